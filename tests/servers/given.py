"""A server whose tools, and what each answers, are given on the command line.

    python tests/servers/given.py --given '[{"name": "t", "answer": {"content": []}, …}]' [options of echo.py]

Each tool is its definition; `answer` is the result of every call of it. The tools of echo.py come after them.
"""

from __future__ import annotations

import json

from echo_server import Echo, echo_parser
from script_options import Options
from wire import Message, Wire


class Given(Echo):
    """The server."""

    def __init__(self, options: Options, wire: Wire) -> None:
        super().__init__(options, wire)
        given = json.loads(options.given)
        self.answers = {tool["name"]: tool.pop("answer", {"content": []}) for tool in given}
        self.tools = [{"inputSchema": {"type": "object"}, **tool} for tool in given] + self.tools

    def call(self, request: Message) -> Message | None:
        answer: Message | None = self.answers.get(request["params"]["name"])
        return super().call(request) if answer is None else answer


def main() -> None:
    parser = echo_parser(__doc__)
    parser.add_argument("--given", required=True, metavar="JSON", help="the tools")
    options = parser.parse_args()
    wire = Wire(options)
    Given(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
