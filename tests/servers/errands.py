"""A server of tasks that outlive its process, are listed or not, and have names that must not be trusted.

    python tests/servers/errands.py [the options of offers.py] [--keep FILE] [--declare WORDS] [--named ID]

Tools besides those of offers.py: `finish` ends every task that works. With `--keep` the tasks are those in FILE, so
that another process goes on with them. `--declare list` offers tasks/list and not tasks/cancel. The first task is
called ID and says ID.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from echo_server import define
from offers import Offers, offers_parser
from wire import Message, Wire, text


class Errands(Offers):
    """The server, and the file its tasks are in."""

    def __init__(self, options: Any, wire: Wire) -> None:
        super().__init__(options, wire)
        self.file = Path(options.keep) if options.keep else None
        if self.file and self.file.exists():
            self.tasks = json.loads(self.file.read_text())
        self.quick["finish"] = self.finish
        self.tools = [*self.tools, define("finish", "Ends every task that works.", {})]

    def initialize(self, request: Message) -> Message:
        answer = super().initialize(request)
        declared = answer["capabilities"].get("tasks", {})
        for word in ("list", "cancel"):
            if word not in self.options.declare:
                declared.pop(word, None)
        return answer

    def begin(self, params: Message) -> Message:
        begun = super().begin(params)
        if self.options.named and len(self.tasks) == 1:
            self.tasks = {self.options.named: self.tasks.popitem()[1]}
            begun = {"task": self.told(self.options.named)}
        self.save()
        return begun

    def told(self, name: str) -> Message:
        named = {"statusMessage": name, "tool": name} if name == self.options.named else {}
        return super().told(name) | {"ttl": 300_000} | named

    def finish(self, arguments: Message) -> Message:
        for task in self.tasks.values():
            task["left"] = 0
        return text("finished")

    def save(self) -> None:
        if self.file:
            self.file.write_text(json.dumps(self.tasks))


def main() -> None:
    parser = offers_parser(__doc__)
    parser.add_argument("--keep", metavar="FILE", help="where the tasks are")
    parser.add_argument("--declare", default="list,cancel", metavar="WORDS", help="which of list and cancel to offer")
    parser.add_argument("--named", metavar="ID", help="the id of the first task")
    options = parser.parse_args()
    wire = Wire(options)
    Errands(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
