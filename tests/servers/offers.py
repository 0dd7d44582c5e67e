"""A server with something of everything besides tools: resources, templates, prompts, completion, subscriptions, tasks.

    python tests/servers/offers.py [the options of echo.py] [--no-subscribe] [--no-completions] [--no-tasks] …

Besides those of echo.py it has the tools `change` (a resource gets another text, and subscribers of it or of
something above it are notified, `times` times), `announce` (one more resource and prompt, and both lists are said
to have changed, `times` times), `link` (answers with a link to a resource that is not listed), `research` (must run
as a task), `maybe` (may).
Lists come in pages of `--page M`. With `--outside URL` one more resource has that URI, and everything that can have
icons has some there and at addresses that must not be opened.
"""

from __future__ import annotations

import base64
from typing import Any

from echo_server import INTEGER, STRING, TOOLS, Echo, RefusedError, define, echo_parser
from script_options import OptionsParser
from wire import Message, Wire, text

ODD = "Foo+BAR://x/%7e%2F/\u00fc ?a=b"
README, PIXEL, FOLDER = "memo:///readme.md", "memo:///pixel.png", "memo:///folder"
UNLISTED = "Memo+x:%2fQ"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
FRAMEWORKS = {"python": ["fastapi", "flask", "django"], "rust": ["axum", "actix"]}

RESOURCES: list[Message] = [
    {
        "uri": README,
        "name": "readme",
        "title": "Read me",
        "mimeType": "text/markdown",
        "size": 9,
        "annotations": {"audience": ["user"], "priority": 0.8, "lastModified": "2025-01-12T15:00:58Z"},
    },
    {"uri": PIXEL, "name": "pixel", "mimeType": "image/png"},
    {"uri": FOLDER, "name": "folder", "mimeType": "inode/directory"},
    {"uri": ODD, "name": "odd"},
    {"uri": README, "name": "again"},
]
HUGE: Message = {
    "uri": "memo:///huge",
    "name": "huge",
    "size": 500_000_000,
    "annotations": {"audience": ["assistant"], "priority": 0.1, "lastModified": "2025-06-01T00:00:00Z"},
}
TEMPLATES: list[Message] = [
    {"uriTemplate": "memo:///{folder}/{name}", "name": "note", "title": "A note"},
    {"uriTemplate": "search:///{?q,limit}", "name": "search"},
    {"uriTemplate": "memo:///{", "name": "broken"},
]
PROMPTS: list[Message] = [
    {
        "name": "review",
        "title": "Review code",
        "arguments": [{"name": "language", "required": True}, {"name": "framework"}],
    },
    {"name": "hello"},
]
OWN_TOOLS = [
    define("change", "Changes a resource.", {"uri": STRING}, {"times": INTEGER}),
    define("announce", "Adds one resource and one prompt.", {}, {"times": INTEGER}),
    define("link", "Answers with a link.", {}),
    define("research", "Must run as a task.", {}, {"polls": INTEGER, "interval": INTEGER, "status": STRING})
    | {"execution": {"taskSupport": "required"}},
    define("maybe", "May run as a task.", {}) | {"execution": {"taskSupport": "optional"}},
]


def with_icons(items: list[Message], url: str) -> list[Message]:
    """The items, with an icon at every kind of address."""
    addresses = (url, "file:///etc/passwd", "javascript:alert(1)", "data:image/png;base64,AAAA")
    icons = [{"src": address, "mimeType": "image/png", "sizes": ["48x48"]} for address in addresses]
    return [{**item, "icons": icons} for item in items] if url else list(items)


class Offers(Echo):
    """The server: what its options say, what is subscribed, and its tasks."""

    def __init__(self, options: Any, wire: Wire) -> None:
        super().__init__(options, wire)
        url: str = options.outside
        outside: list[Message] = [{"uri": url, "name": "outside"}] if url else []
        outside += [HUGE] if options.huge else []
        self.tools = with_icons([*TOOLS, *OWN_TOOLS], url)
        self.resources, self.prompts = with_icons([*RESOURCES, *outside], url), with_icons(PROMPTS, url)
        self.templates = with_icons(TEMPLATES, url)
        self.texts = {
            README: "# Read me",
            ODD: "odd",
            FOLDER: "",
            UNLISTED: "never listed",
            HUGE["uri"]: "so small",
            url: "as the server has it",
        }
        self.subscribed: set[str] = set()
        self.tasks: dict[str, Message] = {}
        self.quick |= {"change": self.change, "announce": self.announce, "maybe": lambda arguments: text("now")}
        self.quick["link"] = lambda arguments: {"content": [{"type": "resource_link", "uri": UNLISTED, "name": "l"}]}
        self.methods |= {
            "resources/list": lambda request: self.page(request, "resources", self.resources),
            "resources/templates/list": lambda request: self.page(request, "resourceTemplates", self.templates),
            "resources/read": self.read,
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.unsubscribe,
            "prompts/list": lambda request: self.page(request, "prompts", self.prompts),
            "prompts/get": self.prompt,
            "completion/complete": self.complete,
            "tasks/get": self.task,
            "tasks/result": self.task_result,
            "tasks/cancel": self.cancel_task,
            "tasks/list": lambda request: {"tasks": [self.told(name) for name in self.tasks]},
        }
        for method in options.without:
            del self.methods[method]

    def initialize(self, request: Message) -> Message:
        answer = super().initialize(request)
        (answer["serverInfo"],) = with_icons([answer["serverInfo"]], self.options.outside)
        offered = answer["capabilities"]
        offered |= {"resources": {"listChanged": True}, "prompts": {"listChanged": True}}
        offered["resources"]["subscribe"] = not self.options.no_subscribe
        if not self.options.no_completions:
            offered["completions"] = {}
        if not self.options.no_tasks:
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        return answer

    def page(self, request: Message, key: str, items: list[Message]) -> Message:
        start = int((request.get("params") or {}).get("cursor", "0"))
        end = start + (self.options.page or len(items))
        return {key: items[start:end]} | ({"nextCursor": str(end)} if end < len(items) else {})

    def read(self, request: Message) -> Message:
        uri = request["params"]["uri"]
        if uri == PIXEL:
            return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PICTURE}]}
        if uri not in self.texts:
            self.wire.refuse(request["id"], -32002, "there is no such resource", data={"uri": uri})
            return None  # type: ignore[return-value]
        return {"contents": [{"uri": uri, "text": self.texts[uri]}]}

    def subscribe(self, request: Message) -> Message:
        self.subscribed.add(request["params"]["uri"])
        return {}

    def unsubscribe(self, request: Message) -> Message:
        self.subscribed.discard(request["params"]["uri"])
        return {}

    def change(self, arguments: Message) -> Message:
        uri, times = arguments["uri"], arguments.get("times", 1)
        for number in range(1, times + 1):
            self.texts[uri] = f"changed {number}"
            if any(uri == above or uri.startswith(above + "/") for above in self.subscribed):
                self.wire.notify("notifications/resources/updated", {"uri": uri})
        self.wire.notify("notifications/resources/updated", {"uri": "memo:///nobody-asked"})
        return text(f"changed {times} times")

    def announce(self, arguments: Message) -> Message:
        number = len(self.resources)
        self.resources.append({"uri": f"memo:///new-{number}", "name": "new"})
        self.prompts.append({"name": f"new-{number}"})
        for kind in ("resources", "prompts") * int(arguments.get("times", 1)):
            self.wire.notify(f"notifications/{kind}/list_changed")
        return text("announced")

    def prompt(self, request: Message) -> Message:
        params = request["params"]
        if params["name"] not in [prompt["name"] for prompt in self.prompts]:
            raise RefusedError(-32602, f"unknown prompt {params['name']}")
        said = {"type": "text", "text": f"{params['name']} {sorted((params.get('arguments') or {}).items())}"}
        link = {"type": "resource_link", "uri": README, "name": "readme"}
        return {"messages": [{"role": "user", "content": said}, {"role": "assistant", "content": link}]}

    def complete(self, request: Message) -> Message:
        params = request["params"]
        argument, known = params["argument"], (params.get("context") or {}).get("arguments", {})
        choices = FRAMEWORKS.get(known.get("language"), []) if argument["name"] == "framework" else list(FRAMEWORKS)
        found = [choice for choice in choices if choice.startswith(argument["value"])]
        return {"completion": {"values": found, "total": len(found), "hasMore": False}}

    def call(self, request: Message) -> Message | None:
        params = request["params"]
        if "task" in params:
            return self.begin(params)
        if params["name"] == "research":
            raise RefusedError(-32601, "research must run as a task")
        return super().call(request)

    def begin(self, params: Message) -> Message:
        arguments, name = params.get("arguments") or {}, f"task-{len(self.tasks) + 1}"
        token = (params.get("_meta") or {}).get("progressToken")
        self.tasks[name] = {"left": arguments.get("polls", 1), "token": token, "status": "working", **arguments}
        return {"task": self.told(name)}

    def told(self, name: str) -> Message:
        task = self.tasks[name]
        status = "working" if task["left"] > 0 else task["status"] if task["status"] != "working" else "completed"
        return {
            "taskId": name,
            "status": status,
            "statusMessage": f"{task['left']} to go",
            "createdAt": "2025-11-25T00:00:00Z",
            "lastUpdatedAt": "2025-11-25T00:00:00Z",
            "ttl": None,
            "pollInterval": task.get("interval", 10),
        }

    def known(self, request: Message) -> str:
        name: str = request["params"]["taskId"]
        if name not in self.tasks:
            raise RefusedError(-32602, f"no such task {name}")
        return name

    def task(self, request: Message) -> Message:
        name = self.known(request)
        task = self.tasks[name]
        if task["left"] > 0:
            task["left"] -= 1
            self.wire.notify("notifications/progress", {"progressToken": task["token"], "progress": -task["left"]})
        return self.told(name)

    def task_result(self, request: Message) -> Message:
        return text("found", _meta={"io.modelcontextprotocol/related-task": {"taskId": self.known(request)}})

    def cancel_task(self, request: Message) -> Message:
        name = self.known(request)
        self.tasks[name] |= {"left": 0, "status": "cancelled"}
        return self.told(name)


def offers_parser(description: str | None) -> OptionsParser:
    """A parser that knows the options of this server."""
    parser = echo_parser(description)
    parser.add_argument("--no-subscribe", action="store_true", help="do not offer subscriptions")
    parser.add_argument("--no-completions", action="store_true", help="do not offer completion")
    parser.add_argument("--huge", action="store_true", help="one more resource, which says it is huge")
    parser.add_argument("--no-tasks", action="store_true", help="do not offer tasks")
    parser.add_argument("--outside", default="", metavar="URL", help="a resource's URI and an icon's address")
    parser.add_argument("--without", action="append", default=[], metavar="METHOD", help="do not know METHOD")
    return parser


def main() -> None:
    options = offers_parser(__doc__).parse_args()
    wire = Wire(options)
    Offers(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
