"""The good plain server, which `echo.py` runs and others extend."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from script_options import TYPE_CHECKING, Options, OptionsParser
from wire import REVISIONS, Message, Wire, decode, options_parser, text

if TYPE_CHECKING:
    from typing import Any

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NUMBER, INTEGER, STRING, BOOLEAN = ({"type": kind} for kind in ("number", "integer", "string", "boolean"))
Handler = Callable[[Message], Message | None]
VERSION = "io.modelcontextprotocol/protocolVersion"
CACHEABLE = ("server/discover", "tools/list")


def define(name: str, description: str, required: Message, optional: Message | None = None) -> Message:
    """A tool's definition; both property tables map a name to its schema."""
    schema: Message = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        schema["required"] = list(required)
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    define("echo", "Says back the text it was given.", {"text": STRING}),
    define("add", "Adds two numbers.", {"a": NUMBER, "b": NUMBER})
    | {"outputSchema": {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}},
    define("sleep", "Answers after some seconds, unless cancelled.", {"seconds": NUMBER}),
    define("progress", "Reports each step, interval seconds apart.", {"steps": INTEGER}, {"interval": NUMBER}),
    define("log", "Sends log messages.", {"count": INTEGER}, {"text": STRING, "level": STRING, "logger": STRING}),
    define("fail", "Answers with isError.", {}, {"text": STRING}),
    define("big", "Answers with that many bytes of text.", {"bytes": INTEGER}),
    define(
        "environment",
        "Names of all variables, values of some.",
        {},
        {"names": {"type": "array", "items": STRING}},
    ),
    define("stderr", "Writes that many bytes to stderr.", {"bytes": INTEGER}, {"text": STRING}),
    define("exit", "Ends without an answer; a negative code is a signal.", {"code": INTEGER}),
    define(
        "children",
        "Starts a sleeping child, which holds our pipes unless it is a daemon, and returns its pid.",
        {},
        {"seconds": NUMBER, "own_session": BOOLEAN, "ignore_sigterm": BOOLEAN, "daemon": BOOLEAN, "bare": BOOLEAN},
    ),
]


class RefusedError(Exception):
    """The request is answered with an error: code, message."""


def echo(arguments: Message) -> Message:
    return text(arguments["text"])


def add(arguments: Message) -> Message:
    total = arguments["a"] + arguments["b"]
    return text(str(total), structuredContent={"sum": total})


def fail(arguments: Message) -> Message:
    return text(arguments.get("text", "it did not work"), isError=True)


def big(arguments: Message) -> Message:
    return text("x" * arguments["bytes"])


def environment(arguments: Message) -> Message:
    values = {name: os.environ.get(name) for name in arguments.get("names", ())}
    found = {"keys": sorted(os.environ), "values": values}
    return text("\n".join(found["keys"]), structuredContent=found)


def stderr(arguments: Message) -> Message:
    words = (arguments.get("text", "e" * 79) + "\n").encode()
    size = arguments["bytes"]
    sys.stderr.buffer.write((words * (size // len(words) + 1))[:size])
    sys.stderr.buffer.flush()
    return text(f"wrote {size} bytes")


def leave(arguments: Message) -> Message:
    if arguments["code"] < 0:
        os.kill(os.getpid(), -arguments["code"])
        signal.pause()
    os._exit(arguments["code"])


def ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def children(arguments: Message) -> Message:
    import subprocess  # few of the servers start any

    seconds = str(arguments.get("seconds", 60))
    if arguments.get("daemon"):  # its own session, and a parent that has ended
        script = f"setsid sh -c 'echo $$; exec sleep {seconds} > /dev/null 2>&1' &"
        pid = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)
        return text(str(pid), structuredContent={"pid": pid})
    child = subprocess.Popen(
        ["sleep", seconds],
        start_new_session=arguments.get("own_session", False),
        preexec_fn=ignore_sigterm if arguments.get("ignore_sigterm") else None,
        env={} if arguments.get("bare") else None,
    )
    return text(str(child.pid), structuredContent={"pid": child.pid})


QUICK: dict[str, Callable[[Message], Message]] = {
    "echo": echo, "add": add, "fail": fail, "big": big, "environment": environment,
    "stderr": stderr, "exit": leave, "children": children, "grown": lambda arguments: text("grown"),
}  # fmt: skip


class Echo:
    """The server: what its options say, and the slow calls that run."""

    def __init__(self, options: Options, wire: Wire) -> None:
        self.options, self.wire = options, wire
        self.level = 0
        generated = [define(f"tool-{n:04}", f"Generated tool {n}.", {}) for n in range(1, options.tools + 1)]
        self.tools = generated or TOOLS
        if options.harmless:
            self.tools = [{**tool, "annotations": {"destructiveHint": False}} for tool in self.tools]
        self.running: dict[Any, threading.Event] = {}
        self.quick = QUICK | {"log": self.log}
        self.slow = {"sleep": self.sleep, "progress": self.progress}
        self.methods: dict[str, Handler] = {"initialize": self.initialize, "ping": lambda request: {}}
        if options.modern:
            self.methods["server/discover"] = self.discover
        if not options.no_tools:
            self.methods |= {"tools/list": self.list_tools, "tools/call": self.call}
        if not options.no_logging:
            self.methods["logging/setLevel"] = self.set_level
        if options.grows:
            # In a thread: the handler may interrupt a write, which holds the lock of the wire.
            signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=self.grow).start())

    def grow(self) -> None:
        self.tools = [*self.tools, define("grown", "Came later.", {})]
        self.wire.notify("notifications/tools/list_changed")

    def serve(self) -> None:
        """Answers line after line until the input ends."""
        methods, reply = self.methods, self.wire.reply
        for line in self.wire.lines():
            message = decode(line.decode())
            if "id" not in message:
                self.notified(message)
            elif handler := methods.get(message.get("method")):
                try:
                    result = handler(message)
                except RefusedError as error:
                    self.wire.refuse(message["id"], *error.args)
                else:
                    if result is not None:
                        reply(message["id"], {**self.envelope(message), **result} if self.options.modern else result)
            elif "method" in message:
                self.unknown(message)

    def envelope(self, request: Message) -> Message:
        """Members of a result besides its content in revision 2026-07-28; empty in an older one."""
        if VERSION not in request.get("params", {}).get("_meta", {}):
            return {}
        kept = {"ttlMs": 0, "cacheScope": "private"} if request["method"] in CACHEABLE else {}
        return {"resultType": "complete", **kept}

    def unknown(self, message: Message) -> None:
        if self.options.unknown == "exit":
            os._exit(1)
        if self.options.unknown != "silent":
            words = f"unknown method {message['method']}"
            self.wire.refuse(message["id"], int(self.options.unknown), words)

    def notified(self, message: Message) -> None:
        if message.get("method") == "notifications/cancelled":
            stop = self.running.get(message["params"].get("requestId"))
            if stop:
                stop.set()

    def initialize(self, request: Message) -> Message:
        time.sleep(self.options.delay)
        asked = request["params"].get("protocolVersion")
        capabilities: Message = {} if self.options.no_tools else {"tools": {"listChanged": True}}
        if not self.options.no_logging:
            capabilities["logging"] = {}
        answer = {
            "protocolVersion": self.options.protocol or (asked if asked in REVISIONS else REVISIONS[-1]),
            "capabilities": capabilities,
            "serverInfo": {"name": self.options.name, "version": "1.0"},
        }
        return answer | ({"instructions": self.options.instructions} if self.options.instructions else {})

    def discover(self, request: Message) -> Message:
        """The opening of revision 2026-07-28, which this server speaks if its options say so."""
        meta = {"io.modelcontextprotocol/serverInfo": {"name": self.options.name, "version": "1.0"}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta}

    def set_level(self, request: Message) -> Message:
        level = request["params"].get("level")
        if level not in LEVELS:
            raise RefusedError(-32602, f"no such level {level}")
        self.level = LEVELS.index(level)
        return {}

    def list_tools(self, request: Message) -> Message:
        cursor = (request.get("params") or {}).get("cursor", "0")
        if not cursor.isdecimal():
            raise RefusedError(-32602, f"no such cursor {cursor}")
        start = int(cursor)
        end = start + (self.options.page or len(self.tools))
        page: Message = {"tools": self.tools[start:end]}
        return page | ({"nextCursor": str(end)} if end < len(self.tools) else {})

    def call(self, request: Message) -> Message | None:
        name, arguments = request["params"]["name"], request["params"].get("arguments") or {}
        if self.options.kill_client:
            os.kill(os.getppid(), signal.SIGKILL)
        if slow := self.slow.get(name):
            stop = self.running[request["id"]] = threading.Event()
            threading.Thread(target=self.run, args=(slow, request, stop), daemon=True).start()
            return None
        if quick := self.quick.get(name):
            try:
                return quick(arguments)
            except (KeyError, TypeError, ValueError) as error:
                raise RefusedError(-32602, f"{name}: bad arguments: {error!r}") from None
        if name.startswith("tool-"):
            return text(repr(arguments))
        raise RefusedError(-32602, f"unknown tool {name}")

    def run(self, slow: Callable[..., bool], request: Message, stop: threading.Event) -> None:
        params = request["params"]
        finished = slow(params.get("arguments") or {}, (params.get("_meta") or {}).get("progressToken"), stop)
        del self.running[request["id"]]
        if finished:
            self.wire.reply(request["id"], text("done"))

    def sleep(self, arguments: Message, token: Any, stop: threading.Event) -> bool:
        return not stop.wait(arguments["seconds"])

    def progress(self, arguments: Message, token: Any, stop: threading.Event) -> bool:
        steps = arguments["steps"]
        for step in range(1, steps + 1):
            if stop.wait(arguments.get("interval", 0)):
                return False
            if token is not None:
                report = {"progressToken": token, "progress": step, "total": steps, "message": f"step {step}"}
                self.wire.notify("notifications/progress", report)
        return True

    def log(self, arguments: Message) -> Message:
        level = arguments.get("level", "info")
        count = arguments["count"] if LEVELS.index(level) >= self.level else 0
        line = {
            "level": level,
            "data": arguments.get("text", "hello"),
            "logger": arguments.get("logger", "echo"),
        }
        for _ in range(count):
            self.wire.notify("notifications/message", line)
        return text(f"sent {count}")


def echo_parser(description: str | None) -> OptionsParser:
    """A parser that knows what an `Echo` understands."""
    parser = options_parser(description)
    parser.add_argument("--protocol", metavar="VERSION", help="answer with VERSION whatever was asked")
    parser.add_argument("--modern", action="store_true", help="speak revision 2026-07-28, too")
    parser.add_argument("--delay", type=float, default=0.0, metavar="S", help="answer initialize after S seconds")
    parser.add_argument("--tools", type=int, default=0, metavar="N", help="list N generated tools instead")
    parser.add_argument("--page", type=int, default=0, metavar="M", help="tools a page (all of them)")
    parser.add_argument("--name", default="echo", help="serverInfo.name")
    parser.add_argument("--instructions", default="", help="instructions for the model")
    parser.add_argument("--harmless", action="store_true", help="claim that no tool is destructive")
    parser.add_argument("--grows", action="store_true", help="on SIGUSR1 offer the tool grown, too, and announce it")
    parser.add_argument("--no-tools", action="store_true", help="neither offer nor know tools")
    parser.add_argument("--no-logging", action="store_true", help="neither offer nor know logging/setLevel")
    parser.add_argument("--kill-client", action="store_true", help="kill who started it as soon as a tool is called")
    parser.add_argument("--unknown", default="-32601", metavar="CODE|silent|exit", help="to unknown requests")
    return parser
