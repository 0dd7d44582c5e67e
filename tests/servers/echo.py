"""The good plain server: does what it is asked, quickly, and is the peer in benchmarks.

    python tests/servers/echo.py [--protocol VERSION] [--delay S] [--record FILE] [--ignore-eof] …

Tools: echo add sleep progress log fail big environment stderr exit children. `sleep` and `progress` run in a
thread of their own and can be cancelled; everything else is answered before the next line is read.
With `--tools N` the list holds N generated tools instead (`tool-0001` …, each answers with its arguments), in
pages of `--page M`; the tools named above can then still be called. With `--grows`, SIGUSR1 adds the tool `grown`.
"""

from __future__ import annotations

from echo_server import Echo, echo_parser  # of a script itself Python keeps no compiled copy
from wire import Wire


def main() -> None:
    options = echo_parser(__doc__).parse_args()
    wire = Wire(options)
    Echo(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
