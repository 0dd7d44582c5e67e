"""A server that breaks one rule, chosen on the command line, and keeps all others.

    python tests/servers/hostile.py MODE [--at METHOD] [--count N] [--bytes N] [--kind K] [--interval S] …

It offers two tools: `act`, which most modes spoil, and `report`, which reports the messages of the client. Where a bad
message would leave the client waiting, the right answer (text "right") follows it; text "wrong" must never
be believed. The modes, and the options each of them reads:

"""

from __future__ import annotations

import hostile_batches
import hostile_life
import hostile_lists
import hostile_messages
import hostile_modern
import hostile_text
import hostile_traffic
from peer import MODES, Peer
from script_options import Options
from wire import Wire, options_parser

FAMILIES = (
    hostile_messages,
    hostile_batches,
    hostile_life,
    hostile_lists,
    hostile_traffic,
    hostile_text,
    hostile_modern,
)


def options() -> Options:
    listing = "\n".join(f"  {name:26} {' '.join(description.split())}" for name, (_, description) in MODES.items())
    parser = options_parser((__doc__ or "") + listing)
    parser.add_argument("mode", metavar="MODE", choices=MODES)
    parser.add_argument("--at", metavar="METHOD", help="where it happens, if not at the mode's own place")
    parser.add_argument("--protocol", metavar="VERSION", help="agree on VERSION whatever was asked")
    parser.add_argument("--count", type=int, metavar="N", help="how many")
    parser.add_argument("--bytes", type=int, metavar="N", help="how long")
    parser.add_argument("--kind", metavar="K", help="which variant")
    parser.add_argument("--interval", type=float, default=0.02, metavar="S", help="how often, in seconds")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    wire = Wire(chosen)
    peer = Peer(wire, chosen)
    start, _ = MODES[chosen.mode]
    start(peer)
    peer.serve()
    wire.end()


if __name__ == "__main__":
    main()
