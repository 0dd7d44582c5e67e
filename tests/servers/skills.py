"""A server with skills, in both eras, over stdio or Streamable HTTP.

    python tests/servers/skills.py [--http [--port N]] [--page N] [--folder DIR] [--unique] [--lists-nothing] …

Skills: `tides` has a text and a picture beside its SKILL.md, `harbour` holds the nested skill `pilots`, `logbook` is
dynamic, `cellar` is not listed, and two are called `signals`. With `--folder DIR` the skills are the folders of DIR
that hold a SKILL.md, read again at each request.

Tools change what is served: `edit` gives a file another text, or the base64 of other bytes, and `remove` takes one
away. The entries change with it unless `published` is false; `announce` says that the resources have changed. `reads`
says how often each file was read. Frontmatter is `key: JSON`, or `key: text`. Standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterator

from script_options import TYPE_CHECKING, Options, OptionsParser
from wire import REVISIONS, Message, Wire, decode, options_parser, text

if TYPE_CHECKING:
    from typing import Any

    from web import Talk

EXTENSION = "io.modelcontextprotocol/skills"
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
SCHEME = "skill://"
MAIN = "SKILL.md"
DYNAMIC = "dynamic"
DIRECTORY = "inode/directory"
NOTICE = "notice:///board"
MIME_TYPES = {".md": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".png": "image/png"}
INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601
FRESH_MILLISECONDS = 60_000
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(24))


def skill_text(body: str, **frontmatter: object) -> bytes:
    """A SKILL.md."""
    lines = (
        f"{name.replace('_', '-')}: {json.dumps(value, ensure_ascii=False)}" for name, value in frontmatter.items()
    )
    return "\n".join(("---", *lines, "---", "", body, "")).encode()


FILES: dict[str, bytes] = {
    "tides/SKILL.md": skill_text(
        "# Tides\n\nLook up the day in [the table](references/table.csv), and add the depth of the chart.",
        name="tides",
        description="Works out the depth of water at the quay. Use it when someone asks when a ship can berth.",
        license="Apache-2.0",
        compatibility="Needs nothing but the files beside it",
        metadata={"author": "harbour office", "version": "1.0"},
    ),
    "tides/references/table.csv": b"day,high,low\n1,4.2,0.9\n2,4.4,0.7\n",
    "tides/assets/chart.png": PICTURE,
    "harbour/SKILL.md": skill_text(
        "# Harbour\n\nGreet the ship, then follow [the pilots](pilots/SKILL.md).",
        name="harbour",
        description="Brings a ship in. Use it when a ship asks for a berth.",
    ),
    "harbour/pilots/SKILL.md": skill_text(
        "# Pilots\n\nSend a pilot out and keep to [the channel](channel.md).",
        name="pilots",
        description="Sends a pilot out. Use it when a ship waits outside.",
        allowed_tools="Bash(git:*) Read",
    ),
    "harbour/pilots/channel.md": b"# The channel\n\nKeep the green buoys to starboard.\n",
    "logbook/SKILL.md": skill_text(
        "# Logbook\n\nWrite down who came and when.",
        name="logbook",
        description="Keeps the logbook. Use it at the end of a watch.",
    ),
    "north/signals/SKILL.md": skill_text(
        "# Signals of the north pier\n\nOne long blast.",
        name="signals",
        description="Signals of the north pier. Use it in fog.",
    ),
    "south/signals/SKILL.md": skill_text(
        "# Signals of the south pier\n\nTwo short blasts.",
        name="signals",
        description="Signals of the south pier. Use it in fog.",
    ),
    "cellar/SKILL.md": skill_text(
        "# Cellar\n\nNobody is shown this one.", name="cellar", description="Finds a bottle. Use it when asked for one."
    ),
}
DYNAMIC_SKILLS = frozenset({"logbook"})
UNLISTED = frozenset({"cellar"})

TEXT, FLAG = {"type": "string"}, {"type": "boolean"}
CHANGE = {"uri": TEXT, "published": FLAG, "announce": FLAG}


def define(name: str, description: str, properties: Message, **more: Any) -> Message:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties},
        **more,
    }


TOOLS = [
    define("edit", "Gives a file another content.", {**CHANGE, "text": TEXT, "blob": TEXT}),
    define("remove", "Takes a file away.", CHANGE),
    define("reads", "Says how often each file was read.", {}, annotations={"readOnlyHint": True}),
]


class RefusedError(Exception):
    """The request gets this error."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Shelf:
    """The files that are served, and those that the entries describe. Uris are the keys of both."""

    def __init__(
        self,
        files: dict[str, bytes],
        dynamic: frozenset[str] = DYNAMIC_SKILLS,
        unlisted: frozenset[str] = UNLISTED,
    ) -> None:
        self.served = {SCHEME + path: content for path, content in files.items()}
        self.described = dict(self.served)
        self._dynamic = {SCHEME + path for path in dynamic}
        self._unlisted = {SCHEME + path for path in unlisted}

    def edit(self, uri: str, content: bytes | None, *, published: bool = True) -> None:
        """Change a file, or remove it; the entry follows if that is published."""
        for files in (self.served, self.described) if published else (self.served,):
            if content is None:
                files.pop(uri, None)
            else:
                files[uri] = content

    def entries(self) -> list[Message]:
        """The entries of all listed skills."""
        listed = (uri for uri in self.described if uri.endswith(f"/{MAIN}") and root_of(uri) not in self._unlisted)
        return [self.entry(uri) for uri in listed]

    def entry(self, uri: str) -> Message:
        """The entry of the skill at this uri. Raises RefusedError."""
        if uri not in self.described or not uri.endswith(f"/{MAIN}"):
            raise RefusedError(INVALID_PARAMS, f"No skill is at {uri}")
        root = root_of(uri)
        inside = {name: content for name, content in self.described.items() if name.startswith(f"{root}/")}
        resources = DYNAMIC if root in self._dynamic else [described(*each) for each in inside.items()]
        return {"uri": uri, "frontmatter": frontmatter(self.described[uri]), "resources": resources}

    def children(self, uri: str) -> list[Message]:
        """The direct children of a folder. Raises RefusedError."""
        root = uri.removesuffix("/") + "/"
        inside = [name.removeprefix(root) for name in self.served if name.startswith(root)]
        if not inside:
            raise RefusedError(INVALID_PARAMS, f"No folder is at {uri}")
        folders = dict.fromkeys(path.partition("/")[0] for path in inside if "/" in path)
        return [
            *(resource(root + path) for path in inside if "/" not in path),
            *({"uri": root + name, "name": name, "mimeType": DIRECTORY} for name in folders),
        ]

    def contents(self, uri: str) -> Message:
        """The answer to a read. Raises RefusedError."""
        if uri not in self.served:
            raise RefusedError(INVALID_PARAMS, f"No resource is at {uri}")
        content, kind = self.served[uri], mime_type(uri)
        if kind.startswith("text/"):
            return {"uri": uri, "mimeType": kind, "text": content.decode()}
        return {"uri": uri, "mimeType": kind, "blob": base64.b64encode(content).decode()}


class Folder(Shelf):
    """The skills of a folder on disk, as they are now."""

    def __init__(self, path: str) -> None:
        self._path = path
        super().__init__(dict(self._files()), frozenset(), frozenset())

    def entries(self) -> list[Message]:
        self._reload()
        return super().entries()

    def entry(self, uri: str) -> Message:
        self._reload()
        return super().entry(uri)

    def contents(self, uri: str) -> Message:
        self._reload()
        return super().contents(uri)

    def children(self, uri: str) -> list[Message]:
        self._reload()
        return super().children(uri)

    def _reload(self) -> None:
        self.served = {SCHEME + path: content for path, content in self._files()}
        self.described = dict(self.served)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for folder, _, names in sorted(os.walk(self._path)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, self._path).replace(os.sep, "/"), file.read()


def root_of(uri: str) -> str:
    return uri.rpartition("/")[0]


def mime_type(uri: str) -> str:
    return MIME_TYPES.get(os.path.splitext(uri)[1], "application/octet-stream")


def resource(uri: str) -> Message:
    return {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": mime_type(uri)}


def described(uri: str, content: bytes) -> Message:
    return {"uri": uri, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def frontmatter(content: bytes) -> Message:
    """The frontmatter of a SKILL.md whose values are JSON or plain text, one a line."""
    found: Message = {}
    block = content.decode(errors="replace").partition("---\n")[2].partition("\n---")[0]
    for line in block.splitlines():
        name, _, value = line.partition(": ")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


class SkillServer:
    """The server, whatever carries its messages.

    ``entries`` may be replaced by what the list shall be, ``alter`` changes each entry of a list and of skills/get, and
    ``methods`` and ``raw`` answer in another way.
    """

    def __init__(self, shelf: Shelf | None = None, *, page: int = 2, directories: bool = True, name: str = "") -> None:
        self.shelf = shelf or Shelf(FILES)
        self.page, self.directories, self.name = page, directories, name or "skills"
        self.entries: Callable[[], list[Any]] = self.shelf.entries
        self.alter: Callable[[Message], Any] = lambda entry: entry
        self.raw: Callable[[Message], Iterator[bytes] | None] = lambda message: None
        """The bytes of a response that `answer` does not make, in pieces."""
        self.reads: dict[str, int] = {}
        """The number of reads of each uri."""
        self.asked: list[str] = []
        """The methods that came, in order."""
        self.declared: Any = {"directoryRead": True} if directories else {}
        self.listeners: list[tuple[Callable[[Message], None], Any]] = []
        """Those who are notified, each with its subscription in the modern era."""
        self.methods: dict[str, Callable[[Message], Message]] = {
            "ping": lambda params: {},
            "tools/list": lambda params: {"tools": TOOLS},
            "tools/call": self._call,
            "resources/list": lambda params: self.paged("resources", self._resources(), params),
            "resources/templates/list": lambda params: {"resourceTemplates": []},
            "resources/read": self.read,
            "skills/list": lambda params: self.paged("skills", list(map(self.alter, self.entries())), params),
            "skills/get": lambda params: {"skill": self.alter(self.shelf.entry(params.get("uri", "")))},
        }
        if directories:
            self.methods["resources/directory/read"] = lambda params: self.paged(
                "resources", self.shelf.children(params.get("uri", "")), params
            )

    def answer(self, message: Message) -> Message | None:
        """The response to a request; None for what gets none."""
        method, params = message.get("method", ""), message.get("params") or {}
        self.asked.append(method)
        if "id" not in message or not method:
            return None
        modern = f"{PREFIX}protocolVersion" in (params.get("_meta") or {})
        try:
            result = self._opened(method, params) or self._known(method)(params)
        except RefusedError as refusal:
            error = {"code": refusal.code, "message": str(refusal)}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        if modern:
            hints = {"ttlMs": FRESH_MILLISECONDS, "cacheScope": "private"} if method != "tools/call" else {}
            result = {"resultType": "complete", **hints, **result}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def paged(self, kind: str, items: list[Any], params: Message) -> Message:
        """One page of ``items``; a cursor is the number of those before it."""
        if not (cursor := str(params.get("cursor") or 0)).isdecimal():
            raise RefusedError(INVALID_PARAMS, "No such cursor")
        start = int(cursor)
        end = start + self.page
        return {kind: items[start:end]} | ({"nextCursor": str(end)} if end < len(items) else {})

    def read(self, params: Message) -> Message:
        uri = params.get("uri", "")
        self.reads[uri] = self.reads.get(uri, 0) + 1
        if uri == NOTICE:
            return {"contents": [{"uri": NOTICE, "mimeType": "text/plain", "text": "The harbour is open."}]}
        return {"contents": [self.shelf.contents(uri)]}

    def announce(self) -> None:
        """Say that the list of resources has changed."""
        for send, subscription in self.listeners:
            params = {} if subscription is None else {"_meta": {f"{PREFIX}subscriptionId": subscription}}
            send({"jsonrpc": "2.0", "method": "notifications/resources/list_changed", "params": params})

    def listen(self, message: Message, send: Callable[[Message], None]) -> None:
        """Answer a subscription of the modern era, and keep it."""
        subscription = message["id"]
        params = {
            "notifications": message["params"].get("notifications") or {},
            "_meta": {f"{PREFIX}subscriptionId": subscription},
        }
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        self.listeners.append((send, subscription))

    def serve(self, wire: Wire) -> None:
        """Speak over stdin and stdout until the input ends."""
        self.listeners.append((wire.send, None))
        for message in map(decode, map(bytes.decode, wire.lines())):
            if message.get("method") == "server/discover":
                self.listeners.clear()
            if message.get("method") == "subscriptions/listen":
                self.listen(message, wire.send)
            elif (pieces := self.raw(message)) is not None:
                for piece in pieces:
                    wire.raw(piece)
            elif (response := self.answer(message)) is not None:
                wire.send(response)

    def visit(self, talk: Talk) -> None:
        """Answer one request of HTTP."""
        if talk.command == "GET":
            talk.begin_events()
            self._follow(talk, None)
        elif talk.command != "POST":
            talk.whole(405, allow="GET, POST")
        elif talk.visit.message.get("method") == "subscriptions/listen":
            talk.begin_events()
            self._follow(talk, talk.visit.message)
        elif (pieces := self.raw(talk.visit.message)) is not None:
            talk.head(200, content_type="application/json", connection="close")
            for piece in pieces:
                talk.raw(piece)
            talk.close_connection = True
        elif (response := self.answer(talk.visit.message)) is None:
            talk.whole(202)
        else:
            unknown = "error" in response and response["error"]["code"] == METHOD_NOT_FOUND
            modern = talk.headers.get("mcp-protocol-version", "") >= MODERN
            talk.json(response, 404 if unknown and modern else 200)

    def _follow(self, talk: Talk, message: Message | None) -> None:
        if message is None:
            self.listeners.append((talk.events, None))
        else:
            self.listen(message, talk.events)
        mine = self.listeners[-1]
        try:
            talk.linger()
        finally:
            self.listeners.remove(mine)

    def _opened(self, method: str, params: Message) -> Message | None:
        offered: Message = {
            "tools": {},
            "resources": {"listChanged": True},
            "extensions": {EXTENSION: self.declared},
        }
        identity = {"name": self.name, "version": "1.0"}
        if method == "server/discover":
            return {
                "supportedVersions": [MODERN],
                "capabilities": offered,
                "_meta": {f"{PREFIX}serverInfo": identity},
            }
        if method == "initialize":
            wanted = params.get("protocolVersion")
            agreed = wanted if wanted in REVISIONS else REVISIONS[-1]
            return {"protocolVersion": agreed, "capabilities": offered, "serverInfo": identity}
        return None

    def _known(self, method: str) -> Callable[[Message], Message]:
        if method not in self.methods:
            raise RefusedError(METHOD_NOT_FOUND, f"Method not found: {method}")
        return self.methods[method]

    def _resources(self) -> list[Message]:
        mains = [
            {**resource(entry["uri"]), **{name: entry["frontmatter"].get(name, "") for name in ("name", "description")}}
            for entry in self.shelf.entries()
        ]
        return [*mains, {"uri": NOTICE, "name": "notice", "mimeType": "text/plain"}]

    def _call(self, params: Message) -> Message:
        name, given = params.get("name"), params.get("arguments") or {}
        if name == "reads":
            return text(json.dumps(self.reads), structuredContent=self.reads)
        if name not in ("edit", "remove"):
            raise RefusedError(INVALID_PARAMS, f"Unknown tool: {name}")
        content = None
        if name == "edit":
            content = base64.b64decode(given["blob"]) if "blob" in given else given.get("text", "").encode()
        self.shelf.edit(given["uri"], content, published=given.get("published", True))
        if given.get("announce"):
            self.announce()
        return text("done")


def with_transport(parser: OptionsParser) -> OptionsParser:
    """Add the options of whoever serves over either transport."""
    parser.add_argument("--http", action="store_true", help="serve Streamable HTTP, and print the address")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port of --http")
    parser.add_argument("--page", type=int, default=2, metavar="N", help="entries a page")
    return parser


def serve(server: SkillServer, options: Options) -> None:
    """Serve over the transport that the options name, until the input ends."""
    if not options.http:
        wire = Wire(options)
        server.serve(wire)
        wire.end()
    import sys

    from web import Web

    with Web(server.visit, at=options.port) as web:
        print(web.url, flush=True)
        sys.stdin.read()


def main() -> None:
    parser = with_transport(options_parser(__doc__))
    parser.add_argument("--folder", metavar="DIR", help="serve the skills of DIR")
    parser.add_argument("--name", default="", help="the server's name")
    parser.add_argument("--unique", action="store_true", help="leave out the second skill of a name")
    parser.add_argument("--lists-nothing", action="store_true", help="answer skills/list with an empty list")
    parser.add_argument("--without-directories", action="store_true", help="declare no directory reads")
    options = parser.parse_args()
    files = {path: content for path, content in FILES.items() if not options.unique or not path.startswith("south/")}
    shelf = Folder(options.folder) if options.folder else Shelf(files)
    server = SkillServer(
        shelf, page=options.page, directories=not options.without_directories, name=options.name or "skills"
    )
    if options.lists_nothing:
        server.entries = list
    serve(server, options)


if __name__ == "__main__":
    main()
