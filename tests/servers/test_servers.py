"""The scripted servers do what their names say: each mode starts, shakes hands and does its first thing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {"_meta": {"progressToken": "t"}}


def message(method: str, params: Any = None, request_id: int | None = None) -> dict[str, Any]:
    members = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return {name: value for name, value in members.items() if value is not None}


def call(request_id: int, name: str, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", {"name": name, "arguments": arguments, **META}, request_id)


SESSION = [
    message("initialize", HELLO, 1),
    message("notifications/initialized"),
    message("tools/list", {}, 2),
    call(3, "act"),
    message("notifications/cancelled", {"requestId": 3}),
    call(4, "report"),
]


def command(script: str, arguments: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(HERE / script), *arguments.split()]


def lines(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def run(script: str, arguments: str, *messages: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    """Feeds all messages and the end of input, and collects everything the server says until it ends."""
    return subprocess.run(command(script, arguments), input=lines([*messages]), capture_output=True, timeout=20)


DISCOVER = message("server/discover", {}, 5)
LIST_2 = message("tools/list", {"cursor": "2"}, 5)
LIST_AGAIN = message("tools/list", {}, 5)
RIGHT = rb'\{[^{]*"id":3,"result":\{"content":\[\{"type":"text","text":"right"\}'
WRONG = rb'.*"text":"wrong".*\n'
# arguments, what the output must hold (a regular expression), the exit code, a message beyond SESSION
Case = tuple[str, bytes, int, dict[str, Any] | None]
MODES: list[Case] = [
    ("garbage-first", rb'\AHostile.*\n(.*\n)+null\n(.*\n)+.*"id":1,"result"', 0, None),
    ("wrong-id", rb'"id":987654321,' + WRONG + RIGHT, 0, None),
    ("wrong-id --at initialize", rb'"id":987654321,.*"name":"wrong".*\n.*"id":1,.*"hostile"', 0, None),
    ("next-id", rb'"id":4,' + WRONG + RIGHT, 0, None),
    ("string-id", rb'"id":"3",' + WRONG + RIGHT, 0, None),
    ("float-id", rb'"id":3\.0,' + WRONG + RIGHT, 0, None),
    ("bool-id", rb'"id":true,' + WRONG + RIGHT, 0, None),
    ("null-id", rb'"id":null,' + WRONG + RIGHT, 0, None),
    ("list-id", rb'"id":\[3\],' + WRONG + RIGHT, 0, None),
    ("answer-twice", RIGHT + rb'.*\n.*"id":3,' + WRONG, 0, None),
    ("both", rb'"id":3,"result":.*"error":', 0, None),
    ("neither", rb'"id":3\}', 0, None),
    ("error-string", rb'"id":3,"error":"it broke"\}', 0, None),
    ("error-null", rb'"id":3,"error":null\}', 0, None),
    ("bad-code", rb'"id":3,"error":\{"code":"E_BROKE"', 0, None),
    ("no-message", rb'"id":3,"error":\{"code":-32000\}', 0, None),
    ("result-list", rb'"id":3,"result":\[', 0, None),
    ("result-null", rb'"id":3,"result":null', 0, None),
    ("result-string", rb'"id":3,"result":"wrong"', 0, None),
    ("jsonrpc-1", rb'"jsonrpc":"1.0","id":3', 0, None),
    ("no-jsonrpc", rb'"jsonrpc":null,"id":3', 0, None),
    ("answer-with-method", rb'"id":3,"method":"ping","result"', 0, None),
    ("deep-json", rb"\[{100000}\]{100000}\}\}\n" + RIGHT, 0, None),
    ("nan", rb"\[NaN,Infinity,-Infinity,1e400\]\}\}\n" + RIGHT, 0, None),
    ("huge-integer", rb'"odd":9{10000}\}\}\n' + RIGHT, 0, None),
    ("duplicate-keys", rb'"odd":\{"a":1,"a":2\}\}\}\n' + RIGHT, 0, None),
    ("invalid-utf8 --kind overlong", rb'"odd":"\xc0\xaf"\}\}\n' + RIGHT, 0, None),
    ("raw-control", rb'"odd":"\x00\x1b\t"\}\}\n' + RIGHT, 0, None),
    ("trailing-comma", rb'"odd":\[1,2,\]\}\}\n' + RIGHT, 0, None),
    ("bom", rb"\n\xef\xbb\xbf" + RIGHT + rb".*\n" + RIGHT, 0, None),
    ("utf-16", rb"w\0r\0o\0n\0g\0", 0, None),
    ("surrogates", rb'"right \\ud800 and \\udfff"', 0, None),
    ("trickle --interval 0", rb'"right \xe2\x80\xa8\xe2\x80\xa9\xc2\x85 .*\r\n', 0, None),
    ("long-line --bytes 200000", rb'"text": "x{200000}"\}', 0, None),
    ("no-newline --bytes 200000", rb'\nx{200000}\{"jsonrpc"', 0, None),
    ("batch", rb'"protocolVersion":"2025-03-26".*\n(.*\n)*\[\{.*"method":"ping"\},.*"id":3,.*\}\]\n', 0, None),
    ("batch --kind bad-element", rb'\n\[1,null,\{\},\[\],"x",\{.*"id":3,.*\}\]\n', 0, None),
    ("batch --kind empty", rb"\n\[\]\n" + RIGHT, 0, None),
    ("batch --kind nested", rb"\n\[\[\{.*\}\]\]\n" + RIGHT, 0, None),
    ("batch --kind huge --count 200", rb'\n\[(\{"jsonrpc":"2.0","method":[^}]*\}\},){200}\{.*\]\n' + RIGHT, 0, None),
    ("version-unknown", rb'"protocolVersion":"2199-01-01"', 0, None),
    ("version-unknown --kind number", rb'"protocolVersion":20251125', 0, None),
    ("version-none", rb'"result":\{"capabilities"', 0, None),
    ("bad-capabilities", rb'"capabilities":\["tools"\]', 0, None),
    ("bare-greeting", rb'"result":\{"protocolVersion":"2025-06-18"\}', 0, None),
    ("initialize-error", rb'"id":1,"error":\{"code":-32602,.*"requested":"2025-06-18"', 0, None),
    ("initialize-silent", rb'\A[^\n]*"id":2', 0, None),
    ("double-initialize-answer", rb'\A.*"id":1,.*"hostile".*\n.*"id":1,.*"wrong"', 0, None),
    ("crash-at-start", rb"\A\Z", 3, None),
    ("crash-in-initialize --count 7", rb"\A\Z", 7, None),
    ("crash-on-call", rb'"id":2,.*\n\Z', 3, None),
    ("crash-on-call --count 2", RIGHT, 3, call(5, "act")),
    ("crash-on-call --kind half", rb'\n\{"jsonrpc":"2.0","id":3,[^\n]*[^}\n]\Z', 3, None),
    ("crash-on-call --kind kill", rb'"id":2,.*\n\Z', -signal.SIGKILL, None),
    ("close-stdout", rb'"id":2,.*\n\Z', 0, None),
    ("tty", rb'"id":3,.*"(opened|refused: .*)".*"descriptors":\[0,1,2', 0, None),
    ("endless-pages", rb'"name":"tool-2".*"nextCursor":"3"', 0, LIST_2),
    ("endless-pages --count 2", rb'"id":5,.*"name":"tool-2",[^\]]*\]\}\}', 0, LIST_2),
    ("same-cursor", rb'"id":5,.*"nextCursor":"again"', 0, LIST_2),
    ("abca-cursor", rb'"nextCursor":"a"', 0, message("tools/list", {"cursor": "c"}, 5)),
    ("empty-page", rb'"id":5,"result":\{"tools":\[\],"nextCursor":"3"', 0, LIST_2),
    ("empty-page --kind only", rb'"id":5,"result":\{"tools":\[\],"nextCursor":"3"', 0, LIST_2),
    ("bad-cursor", rb'"nextCursor":7', 0, None),
    ("bad-cursor --kind empty", rb'"nextCursor":""', 0, None),
    ("bad-cursor --kind opaque", rb'"id":5,.*"name":"tool-altered"', 0, LIST_2),
    ("bad-cursor-error", rb'"id":5,"error":\{"code":-32602', 0, LIST_2),
    ("page-3-fails", rb'"id":5,"error":\{"code":-32603', 0, message("tools/list", {"cursor": "3"}, 5)),
    ("one-bad-tool", rb'"good-4".*"inputSchema":null.*"good-5"', 0, None),
    ("one-bad-tool --kind all", rb'"good-4".*"bad",null,.*"good-5"', 0, None),
    ("odd-names", rb'"name":"Get".*"name":"get".*"name":"a b"', 0, None),
    ("many-tools --count 300", rb'"name":"tool-299"', 0, None),
    ("big-tool --bytes 2000", rb'"d{2000}".*"field_19999".*"choice 199999"', 0, None),
    ("evil-schema", rb'"\^\(a\+\)\+\$".*"name":"in-explosion"', 0, None),
    ("evil-schema --count 5", rb'"id":5,.*"value":"a+!"', 0, call(5, "out-redos")),
    ("wrong-structured", rb'"id":5,.*"structuredContent":\{"sum":"three"\}', 0, call(5, "wrong")),
    ("definition-changes", rb'tools/list_changed"(.*\n)+.*"id":5,.*"description":"Now', 0, LIST_AGAIN),
    ("silent-change --kind schema", RIGHT + rb'.*\n.*"id":4,.*\n.*"id":5,.*"properties":\{"path"', 0, LIST_AGAIN),
    ("server-requests", rb'"id":"roots".*\n(.*\n)*.*"id":"1".*\n.*"id":1,(.*\n)+' + RIGHT, 0, None),
    ("server-requests --kind float-id", rb'"id":1\.5,"method":"ping"', 0, None),
    ("server-requests", rb'"replies":\[\{"jsonrpc":"2.0","id":"late",', 0, None),
    ("pings-before-initialize", rb'\A(.*"id":"early-\d".*\n){3}.*notifications/message.*\n.*"id":1,', 0, None),
    ("request-flood --count 30", rb'(.*"id":"flood-\d+","method":"sampling.*\n){30}' + RIGHT, 0, None),
    ("notification-flood --count 205", rb"(.*notifications/message.*\n){205}" + RIGHT, 0, None),
    ("list-changed-flood --count 205", rb"(.*tools/list_changed.*\n){205}" + RIGHT, 0, None),
    ("progress-flood --count 205", rb'(.*"progressToken":"t".*\n){206}' + RIGHT, 0, None),
    ("progress-odd", RIGHT + rb'.*\n.*"progress":99', 0, None),
    ("progress-forever", rb'"progressToken":"t","progress":0\}', 0, None),
    ("late-answer", rb'"progress":50.*\n.*"id":3,' + WRONG, 0, None),
    ("cancels-ours", rb'notifications/cancelled","params":\{"requestId":3(.*\n)+' + RIGHT, 0, None),
    ("cancels-its-own", rb'"id":"sampling".*\n.*cancelled","params":\{"requestId":"sampling"', 0, None),
    ("unknown-notification", rb"notifications/hologram(.*\n)+" + RIGHT, 0, None),
    ("escapes", rb'"instructions":".*\\u001b\[2J.*\\u001b\]52', 0, None),
    ("escapes --kind c1", b'"id":5,"error":.*\xc2\x9b', 0, call(5, "fail")),
    ("tells-secrets", rb'"id":3,"error":.*"the keys are ', 0, None),
    ("odd-content", rb'"type":"hologram".*"text":"last"', 0, None),
    ("odd-content --kind missing", rb'"id":3,"result":\{\}', 0, None),
    ("meta-everywhere", rb'"serverInfo":\{[^{]*"_meta":.*\n(.*\n)+.*"text":"right","_meta"', 0, None),
    ("extra-members", rb'"id":3,"result":.*"x-extra".*\},"x-extra":', 0, None),
    ("speaks-modern", rb'"id":5,"result":\{"resultType":"complete","supportedVersions"', 0, DISCOVER),
    ("probe-dies", RIGHT, 3, DISCOVER),
    ("probe-silent", rb'"id":4,"result":(?!(.*\n)*.*"id":5)', 0, DISCOVER),
    ("probe-mute", RIGHT, 0, DISCOVER),
    ("probe-overtaken", RIGHT, 0, DISCOVER),
    ("probe-refuses", RIGHT, 0, DISCOVER),
    ("probe-late", RIGHT, 0, None),
    ("modern-asks", rb'"id":"own-2","method":"sampling/createMessage"(.*\n)+' + RIGHT, 0, None),
    ("modern-needs", rb'"id":3,"result":\{"resultType":"input_required"', 0, None),
    ("modern-state", rb'"id":"nobody","result":\{"requestState":"canary-state-20260728"', 0, None),
    ("modern-strays", rb"subscriptionId(.*\n)+" + RIGHT, 0, None),
    ("modern-page", rb'"id":3,"result":.*"url":"http://127\.0\.0\.1:9/pay"', 0, None),
    ("modern-exits", rb'"id":2,"result"', 3, None),
    ("modern-mismatch", rb'"id":3,"error":\{"code":-32020', 0, None),
    ("modern-annotated", rb'"x-mcp-header":"api-key"', 0, None),
    ("modern-refuses-to-listen", RIGHT, 0, None),
]
LINGERING = ("close-stdin", "stop-reading")


@pytest.mark.parametrize(("arguments", "pattern", "code", "more"), MODES, ids=[case[0] for case in MODES])
def test_each_hostile_mode_does_its_thing(
    arguments: str, pattern: bytes, code: int, more: dict[str, Any] | None
) -> None:
    late = {"jsonrpc": "2.0", "id": "late", "result": {}}
    done = run("hostile.py", arguments, *SESSION[:-1], late, SESSION[-1], *([more] if more else []))
    assert re.search(pattern, done.stdout), done.stdout[:3000]
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_every_hostile_mode_is_in_the_table() -> None:
    listed = re.findall(rb"(?m)^  ([a-z][a-z0-9-]+)  +", run("hostile.py", "--help").stdout.partition(b"positional")[0])
    assert {name.decode() for name in listed} == {case[0].split()[0] for case in MODES} | {*LINGERING}


@pytest.mark.parametrize("mode", LINGERING)
def test_a_server_that_stops_reading_lives_on(mode: str) -> None:
    with Server("hostile.py", mode) as server:
        server.send(*SESSION)
        assert server.until(3)["result"]["content"][0]["text"] == "right"
        assert server.process.poll() is None


class Server:
    """A running server; leaving the block ends it."""

    def __init__(self, script: str, arguments: str = "") -> None:
        self.process = subprocess.Popen(command(script, arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.seen: list[dict[str, Any]] = []

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        with self.process:
            pass

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines([*messages]))
        self.process.stdin.flush()

    def wait_for(self, record: Path, end: str) -> None:
        """Waits until the record ends so; a server that ended, which it does by itself in time, fails the test."""
        while not record.read_text().endswith(end):
            assert self.process.poll() is None

    def until(self, request_id: int) -> dict[str, Any]:
        """The answer to a request; what came before it is in `seen`."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.seen.append(json.loads(line))
            if self.seen[-1].get("id") == request_id:
                return self.seen[-1]
        pytest.fail(f"no answer to {request_id}, only {self.seen}")


ECHO: list[tuple[str, dict[str, Any], bytes]] = [
    ("", message("initialize", HELLO, 5), rb'"protocolVersion":"2025-06-18"'),
    ("--protocol 1999-01-01", message("initialize", HELLO, 5), rb'"protocolVersion":"1999-01-01"'),
    ("--no-tools --no-logging", message("initialize", HELLO, 5), rb'"capabilities":\{\}'),
    ("--name n --instructions i", message("initialize", HELLO, 5), rb'"name":"n".*"instructions":"i"'),
    ("", message("ping", None, 5), rb'"id":5,"result":\{\}'),
    ("", message("tools/list", {}, 5), rb'"echo".*"children"'),
    ("--tools 5 --page 2", message("tools/list", {"cursor": "2"}, 5), rb'"tool-0003".*"nextCursor":"4"'),
    ("--tools 5 --page 2", message("tools/list", {"cursor": "x"}, 5), rb'"code":-32602'),
    ("--tools 5", call(5, "tool-0002", a=1), rb"\{'a': 1\}"),
    ("", call(5, "echo", text="grüße \ud800"), rb'"text":"gr\\u00fc\\u00dfe \\ud800"'),
    ("", call(5, "echo", text="grüße"), "grüße".encode()),
    ("", call(5, "add", a=1, b=2.5), rb'"structuredContent":\{"sum":3\.5\}'),
    ("", call(5, "add", a=1), rb'"code":-32602'),
    ("", call(5, "log", count=2, text="hi"), rb'(.*"level":"info","data":"hi".*\n){2}.*"id":5'),
    ("", call(5, "fail", text="no"), rb'"text":"no".*"isError":true'),
    ("", call(5, "big", bytes=200_000), rb'"x{200000}"'),
    ("", call(5, "environment", names=["PATH"]), rb'"values":\{"PATH":"'),
    ("", call(5, "stderr", bytes=100), rb"wrote 100 bytes"),
    ("", call(5, "nothing"), rb'"code":-32602'),
    ("", message("server/discover", {}, 5), rb'"code":-32601'),
    ("--unknown 0", message("server/discover", {}, 5), rb'"code":0'),
    ("--unknown silent", message("server/discover", {}, 5), rb"\A\Z"),
    ("", message("logging/setLevel", {"level": "loud"}, 5), rb'"code":-32602'),
]


@pytest.mark.parametrize(("arguments", "request_", "pattern"), ECHO)
def test_the_plain_server_answers(arguments: str, request_: dict[str, Any], pattern: bytes) -> None:
    done = run("echo.py", arguments, request_)
    assert re.search(pattern, done.stdout), done.stdout[:3000]
    assert done.returncode == 0
    assert len(done.stderr) == (request_.get("params") or {}).get("arguments", {}).get("bytes", 0) % 200_000


def test_the_plain_server_stays_silent_below_the_level_asked_for() -> None:
    level = message("logging/setLevel", {"level": "error"}, 5)
    done = run("echo.py", "", level, call(6, "log", count=9), call(7, "log", count=1, level="alert"))
    assert done.stdout.count(b"notifications/message") == 1


def test_a_slow_call_blocks_nothing_and_can_be_cancelled() -> None:
    with Server("echo.py") as server:
        server.send(call(5, "sleep", seconds=60), call(6, "progress", steps=3), message("ping", None, 7))
        server.until(7)
        if not any(seen.get("id") == 6 for seen in server.seen):
            server.until(6)
        assert [seen["params"]["progress"] for seen in server.seen if "method" in seen] == [1, 2, 3]
        server.send(message("notifications/cancelled", {"requestId": 5}), message("ping", None, 8))
        server.until(8)
        assert all(seen.get("id") != 5 for seen in server.seen)


def test_the_plain_server_exits_as_asked() -> None:
    assert run("echo.py", "", call(5, "exit", code=7)).returncode == 7
    assert run("echo.py", "", call(5, "exit", code=-signal.SIGKILL)).returncode == -signal.SIGKILL
    assert run("echo.py", "--unknown exit", message("server/discover", {}, 5)).returncode == 1


def test_a_child_of_the_plain_server_is_in_its_group_and_outlives_it() -> None:
    with Server("echo.py") as server:
        server.send(call(5, "children", ignore_sigterm=True), call(6, "children", own_session=True))
        stubborn = server.until(5)["result"]["structuredContent"]["pid"]
        apart = server.until(6)["result"]["structuredContent"]["pid"]
        groups = [os.getpgid(stubborn), os.getpgid(apart)]
        for pid in (stubborn, apart):
            os.kill(pid, signal.SIGKILL)
    assert groups == [os.getpgid(0), apart]


def test_the_record_shows_each_line_and_the_order_of_the_end(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with Server("echo.py", f"--record {record} --ignore-eof --ignore-sigterm") as server:
        server.send(message("ping", None, 5))
        server.until(5)
        server.process.terminate()
        server.wait_for(record, "SIGTERM\n")
        assert server.process.stdin
        server.process.stdin.close()
        server.wait_for(record, "EOF\n")
        server.process.stdin = None
    assert record.read_text() == json.dumps(message("ping", None, 5)) + "\nSIGTERM\nEOF\n"


def test_the_plain_server_takes_its_time_to_exit_when_told() -> None:
    with Server("echo.py", "--exit-delay 0.2") as server:
        assert server.process.stdin
        server.process.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.05)
        assert server.process.wait(10) == 0
        server.process.stdin = None
