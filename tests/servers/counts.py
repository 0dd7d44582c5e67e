"""A stateful server: `count` answers with the number of its calls so far in this process, and with its process id.

python tests/servers/counts.py [options of echo.py]
"""

from __future__ import annotations

import os

from echo_server import TOOLS, Echo, define, echo_parser
from script_options import Options
from wire import Message, Wire, text


class Counts(Echo):
    """The plain server with a memory."""

    def __init__(self, options: Options, wire: Wire) -> None:
        super().__init__(options, wire)
        self.counted = 0
        self.tools = [*TOOLS, define("count", "Counts its own calls.", {})]
        self.quick = {**self.quick, "count": self.count}

    def count(self, arguments: Message) -> Message:
        self.counted += 1
        return text(str(self.counted), structuredContent={"pid": os.getpid()})


def main() -> None:
    options = echo_parser(__doc__).parse_args()
    wire = Wire(options)
    Counts(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
