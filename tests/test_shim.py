"""The pipe of ``mcphost tap``: lines, exit codes, and the same bytes on both sides."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mcphost.cli.between import fast_options
from mcphost.cli.commands.tap import name_of
from mcphost.cli.parser import parse
from mcphost.host.recordings.reading import read_recording
from mcphost.shim import BACKLOG, COPY, PIECE, CopiedLine, LineCutter, Observer, Outlet, Shim, options_of, write_all
from tests.conftest import SERVERS, Until

HOSTILE = b'{"a": 1}\r\nnot JSON\n[{"id": 1}]\n\xff\xfe\x00\xe2\x80\xa8\n\n' + b"x" * 300_000 + b"\nhalf a line"


def tapped(tmp_path: Path, *command: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "MCPHOST_STATE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    words = (sys.executable, "-m", "mcphost", "tap", "--", *command)
    return subprocess.run(words, input=sent, capture_output=True, env=env, timeout=60, check=False)


def test_lines_over_the_limit_come_in_pieces() -> None:
    cutter = LineCutter(4)
    cut = [*cutter.feed(b"ab\ncdef"), *cutter.feed(b"ghi\nj"), *cutter.rest()]
    assert cut == [(b"ab\n", True), (b"cdef", False), (b"ghi\n", False), (b"j", True)]


def test_what_has_room_is_written_at_once_and_in_its_order() -> None:
    reads, writes = os.pipe()
    outlet = Outlet(writes, os.close)
    outlet.open()
    outlet.put(b"first")
    assert select.select([reads], [], [], 0)[0]
    outlet.put(bytes(1 << 20))
    outlet.put(b"last")
    outlet.close()
    with open(reads, "rb") as stream:
        assert stream.read() == b"first" + bytes(1 << 20) + b"last"


def test_a_copy_is_taken_before_the_server_can_answer() -> None:
    """Else a recording has the answer before its request."""
    source, target = os.pipe(), os.pipe()
    os.write(source[1], b"request")
    os.close(source[1])
    came_early = []

    class Watcher:
        full = False

        def take(self, name: str, data: bytes) -> None:
            came_early.append(bool(select.select([target[0]], [], [], 0)[0]))

    shim = Shim([])
    shim.observer = Watcher()  # type: ignore[assignment]
    assert shim.pass_on("agent", source[0], target[1])
    assert (came_early, os.read(target[0], 99)) == ([False], b"request")
    for descriptor in (source[0], *target):
        os.close(descriptor)


@pytest.mark.parametrize("words", [["--name"], ["--nmae", "x", "--", "cat"], ["cat"], ["--"], ["--help"]])
def test_wrong_usage_is_left_to_the_parser(words: list[str]) -> None:
    assert options_of(words, tuple(fast_options("tap"))) is None


def test_the_parser_reads_what_the_fast_path_reads() -> None:
    words = ["--name", "n", "--as=a", "--state", "s", "--into", "i", "--config", "c", "--", "cat", "--name", "x"]
    found = options_of(words, tuple(fast_options("tap")))
    assert found is not None
    parsed = vars(parse(["tap", *words]))
    names = fast_options("tap")
    assert {names[name]: value for name, value in found[0].items()}.items() <= parsed.items()
    assert found[1] == parsed["program"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["npx", "-y", "@ada/server-git@1"], "server-git"),
        (["/usr/bin/uvx", "mcp-server-git"], "mcp-server-git"),
        (["npx"], "npx"),
        (["bin/git-mcp"], "git-mcp"),
    ],
)
def test_a_server_without_a_name_has_that_of_its_package(command: list[str], name: str) -> None:
    assert name_of(parse(["tap", "--", *command]), Shim(command)) == name


def test_bytes_pass_unchanged_and_leave_a_private_file(tmp_path: Path) -> None:
    done = tapped(tmp_path, "cat", sent=HOSTILE)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(HOSTILE).digest()
    (spool,) = (tmp_path / "taps").iterdir()
    assert spool.stat().st_mode & 0o777 == 0o600


def test_skills_pass_a_tap_unchanged_and_are_recorded(tmp_path: Path) -> None:
    command = (sys.executable, "-S", "-E", str(SERVERS / "skills.py"))
    asked = [
        *SESSION[:2],
        {"jsonrpc": "2.0", "id": 2, "method": "skills/list", "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "skills/get", "params": {"uri": "skill://tides/SKILL.md"}},
    ]
    sent = b"".join(json.dumps(each).encode() + b"\n" for each in asked)
    direct = subprocess.run(command, input=sent, capture_output=True, timeout=60, check=True)
    assert tapped(tmp_path, *command, sent=sent).stdout == direct.stdout
    (spool,) = (tmp_path / "taps").iterdir()
    (session,) = read_recording(spool).sessions
    assert [exchange.method for exchange in session.exchanges] == ["initialize", "skills/list", "skills/get"]


def test_a_record_that_cannot_be_written_is_explained_once(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    done = tapped(tmp_path / "state", "cat", sent=b"one\ntwo\n")
    assert done.stdout == b"one\ntwo\n"
    assert done.stderr.count(b"\n") == done.stderr.count(b"what passes is not recorded: cannot write") == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [(["sh", "-c", "echo e >&2; exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["nonexistent-program"], 127)],
)
def test_the_exit_code_is_that_of_a_shell(command: list[str], code: int, tmp_path: Path) -> None:
    assert tapped(tmp_path, *command).returncode == code


FRAMINGS = {
    "nothing": b"",
    "one newline": b"\n",
    "no newline": b"half a line",
    "CRLF": b'{"id":1}\r\n{"id":2}\r\n',
    "lone CR": b'{"id":1}\r{"id":2}\n',
    "batch": b'[{"id":1},{"id":2}]\n',
    "two on a line": b'{"id":1}{"id":2}\n',
    "line separator": '{"id":"\u2028\u2029\x85"}\n'.encode(),
    "control characters": b"\x00\x07\x0b\x0c\x1c\x1b[2J\x7f\n",
    "mark and UTF-16": b"\xef\xbb\xbf{}\n" + '{"id":1}\n'.encode("utf-16"),
    "not UTF-8": b"\xff\xfe\xc0\xaf\xed\xa0\x80\n",
    "deep": b"[" * 100_000 + b"\n",
    "longer than a copy": b"x" * (COPY + 70_000) + b"\n{}\n",
    "many short ones": b"\n" * 10_000,
}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SESSION = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "act", "arguments": {}}},
]
MODES = (
    "garbage-first", "deep-json", "invalid-utf8", "raw-control", "bom", "utf-16", "surrogates", "trickle --interval 0",
    "long-line --bytes 1500000", "no-newline --bytes 1500000", "escapes", "crash-on-call --kind half", "close-stdout",
)  # fmt: skip
"""Of ``tests/servers/hostile.py``: those that break frames, or the stream."""


TWENTY_MEGABYTES = [(b"x" * 99_999 + b"\n") * 10] * 20


class Recorded:
    """An observer's record, which waits while it is held."""

    def __init__(self) -> None:
        self.lines: list[CopiedLine] = []
        self.released = threading.Event()
        self.released.set()

    def __call__(self, line: CopiedLine | None) -> None:
        self.released.wait(30)
        if line is not None:
            self.lines.append(line)

    @property
    def dropped(self) -> int:
        return sum(line.dropped for line in self.lines)


class Screen:
    """The socket of a screen, in the working folder: a path from the root may be too long."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind("screen")
        self._socket.listen()

    def welcome(self) -> socket.socket:
        """Take the connection of a tap."""
        connection, _ = self._socket.accept()
        connection.recv(1_000)
        connection.sendall(b'{"type":"welcome"}\n')
        return connection

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.chdir(tmp_path)
    return Recorded()


@pytest.fixture
def screen(recorded: Recorded) -> Iterator[Screen]:
    screen = Screen()
    yield screen
    screen.close()


def observing(recorded: Recorded, path: str = "") -> Observer:
    observer = Observer(lambda: b"{}\n", lambda: path, lambda: recorded)
    observer.open()
    return observer


def piped(pieces: Iterable[bytes], observer: Observer | None = None, *, blocking: bool = True) -> str:
    """The digest of what comes out of a pump."""
    shim = Shim([])
    shim.observer = observer
    (source, feed), (out, target) = os.pipe(), os.pipe()
    for end in (source, target):
        os.set_blocking(end, blocking)

    def write() -> None:
        for piece in pieces:
            write_all(feed, piece)
        os.close(feed)

    def pump() -> None:
        assert shim.pass_on("server", source, target)
        os.close(target)

    threads = [threading.Thread(target=each) for each in (write, pump)]
    for thread in threads:
        thread.start()
    digest = hashlib.sha256()
    while data := os.read(out, 1 << 20):
        digest.update(data)
    for thread in threads:
        thread.join()
    os.close(source)
    os.close(out)
    return digest.hexdigest()


def digest_of(*pieces: bytes) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


@pytest.mark.hostile("J01", "J02", "J03", "J04", "J05")
@pytest.mark.parametrize("data", FRAMINGS.values(), ids=FRAMINGS)
def test_any_framing_passes_unchanged_and_is_copied(data: bytes, recorded: Recorded) -> None:
    observer = observing(recorded)
    assert piped([data], observer) == digest_of(data)
    observer.close()
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    assert [line.size for line in recorded.lines] == [len(line) for line in lines]
    assert [line.data for line in recorded.lines] == [line[:COPY] for line in lines]


def test_a_record_gets_long_lines_whole_and_a_screen_their_start(recorded: Recorded) -> None:
    observer = Observer(bytes, str, lambda: recorded, always=True)
    observer.open()
    piped([b"x" * (3 * COPY) + b"\n"], observer)
    observer.close()
    (line,) = recorded.lines
    assert (len(line.data), line.size) == (3 * COPY, 3 * COPY)
    assert line.message().endswith(b"\n" + b"x" * COPY)


@pytest.mark.parametrize("mode", MODES)
def test_the_output_of_a_hostile_server_passes_unchanged(mode: str) -> None:
    command = [sys.executable, "-S", "-E", str(SERVERS / "hostile.py"), *mode.split()]
    sent = b"".join(json.dumps(each).encode() + b"\n" for each in SESSION)
    said = subprocess.run(command, input=sent, capture_output=True, timeout=60, check=False).stdout
    assert piped([said]) == digest_of(said)


def test_a_hundred_megabytes_pass_unchanged() -> None:
    blocks = [os.urandom(1_000_000)] * 100
    assert piped(blocks) == digest_of(*blocks)


def test_a_slow_observer_holds_nothing_up_and_drops_are_counted(recorded: Recorded) -> None:
    recorded.released.clear()
    observer = observing(recorded)
    assert piped(TWENTY_MEGABYTES, observer) == digest_of(*TWENTY_MEGABYTES)
    recorded.released.set()
    observer.close()
    assert recorded.dropped * PIECE > 20_000_000 - BACKLOG - 2 * COPY
    assert {line.data for line in recorded.lines} == {b"x" * 99_999, b""}  # the empty one counts what is missing


def test_a_dead_screen_is_no_screen(recorded: Recorded) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind("screen")
    observer = observing(recorded, "screen")
    assert piped([b"one\n"], observer) == digest_of(b"one\n")
    observer.close()
    assert [line.data for line in recorded.lines] == [b"one"]


def test_a_screen_that_is_killed_amid_a_copy_holds_nothing_up(recorded: Recorded, screen: Screen) -> None:
    observer = observing(recorded, "screen")
    connection = screen.welcome()

    def pieces() -> Iterator[bytes]:
        for piece in TWENTY_MEGABYTES:
            yield piece
            if connection.fileno() >= 0:
                connection.recv(1_000)
                connection.close()

    assert piped(pieces(), observer) == digest_of(*TWENTY_MEGABYTES)
    observer.close()
    assert recorded.lines


async def test_a_later_screen_receives_how_the_session_was_opened(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr("mcphost.shim.RETRY", 0.0)
    observer = observing(recorded, "screen")
    for source, line in (("agent", b"hello\n"), ("agent", b"more\n"), ("server", b"welcome\n")):
        observer.take(source, line)
    await until(lambda: len(recorded.lines) == 3)
    screen = Screen()
    observer.take("agent", b"last\n")
    with screen.welcome() as connection:
        observer.close()
        with connection.makefile("rb") as received:
            copies = re.findall(rb"\n([a-z]+)", received.read())
    assert copies == [b"hello", b"welcome", b"last"]
    screen.close()


def test_a_screen_that_never_reads_holds_nothing_up(recorded: Recorded, screen: Screen) -> None:
    observer = observing(recorded, "screen")
    connection = screen.welcome()
    assert piped(TWENTY_MEGABYTES, observer) == digest_of(*TWENTY_MEGABYTES)
    connection.close()
    observer.close()
    assert recorded.dropped


def test_a_flood_passes_where_an_agent_made_its_pipes_impatient() -> None:
    assert piped(TWENTY_MEGABYTES, blocking=False) == digest_of(*TWENTY_MEGABYTES)


def test_a_flood_passes_to_a_stream_that_only_takes_writes(tmp_path: Path) -> None:
    (source, feed), file = os.pipe(), os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write_all(feed, b"x" * 50_000)
    os.close(feed)
    assert Shim([]).pass_on("server", source, file)
    os.close(source)
    os.close(file)
    assert (tmp_path / "file").read_bytes() == b"x" * 50_000


def test_a_screen_that_disconnects_a_tap_ends_the_program() -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "mcphost", "tap", "--", "cat"]
    # A socket's path must be short.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/agents.sock")
        listening.listen()
        env = {**os.environ, "MCPHOST_STATE_DIR": folder}
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env) as tap, listening.accept()[0] as screen:
            screen.recv(1_000)
            screen.sendall(b'{"type":"welcome"}\n["not a message"]\n{"type":"disconnect"}\n')
            assert tap.wait(30) == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")
def test_a_screen_that_goes_at_once_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lost = threading.Event()
    observer = Observer(lambda: b"hello\n", lambda: "screen.sock", lambda: lambda line: None)
    observer.lost = lost.set

    def welcome() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as lines:
            lines.readline()
            connection.sendall(b'{"type": "welcome"}\n')

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("screen.sock")
        listening.listen()
        screen = threading.Thread(target=welcome)
        screen.start()
        observer.open()
        screen.join()
        assert lost.wait(30)
        assert not observer.say(b"{}\n")
        observer.close()
