"""A gate as its agent runs it: a process of its own before a small server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.cli.addresses import GatedAddress
from mcphost.cli.agent_settings import allow_command
from mcphost.cli.commands.gate import _Decider, _masking, settings_of
from mcphost.places import socket_path
from mcphost.serving import link
from mcphost.shim import CopiedLine, Observer, Shim
from tests.transports.http.http_connection import Echo, Web

pytestmark = pytest.mark.slow

ECHO = (sys.executable, "-S", "-E", str(Path(__file__).parents[2] / "servers" / "echo.py"))
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "an agent", "version": "1"}}


class GateProcess:
    """A gate and the agent's end of its streams."""

    def __init__(self, env: dict[str, str], folder: Path, *options: str, runs: Sequence[str] = ECHO) -> None:
        command = [sys.executable, "-m", "mcphost", "gate", "--name", "echo", *options, "--", *runs]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe)
        self.state = Path(env["MCPHOST_STATE_DIR"])

    def send(self, method: str, params: dict[str, Any] | None = None, id: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({} if id is None else {"id": id})
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def open(self) -> None:
        self.send("initialize", INITIALIZE, 1)
        assert self.read()["id"] == 1
        self.send("notifications/initialized")

    def call(self, id: int, text: str = "hi") -> None:
        self.send("tools/call", {"name": "echo", "arguments": {"text": text}}, id)

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(20)

    @property
    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.state / "audit.jsonl").read_text().splitlines()]


GateOf = Callable[..., GateProcess]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    runtime = tempfile.mkdtemp()  # a socket's path must be short
    (tmp_path / "config.toml").write_text('[policy]\nallow = ["claude>echo:*"]\n')
    yield {
        **os.environ,
        "HOME": str(tmp_path),
        "MCPHOST_CONFIG": str(tmp_path / "config.toml"),
        "MCPHOST_STATE_DIR": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": runtime,
        "MCPHOST_KEYCHAIN": "off",
    }
    shutil.rmtree(runtime)


@pytest.fixture
def gate(env: dict[str, str], tmp_path: Path) -> Iterator[GateOf]:
    started: list[GateProcess] = []

    def start(*options: str, **more: Any) -> GateProcess:
        started.append(GateProcess(env, tmp_path, *options, **more))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()
        for stream in (each.process.stdin, each.process.stdout, each.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


def words_of(answer: dict[str, Any]) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


@pytest.mark.requirement("HOST-06")
def test_a_gate_without_a_screen_decides_by_the_rules(gate: GateOf) -> None:
    allowed = gate("--as", "claude")
    allowed.open()
    allowed.call(2)
    assert words_of(allowed.read()) == "hi"
    assert allowed.end() == 0
    decision, outcome = allowed.audit
    assert (decision["agent"], decision["allowed"], outcome["outcome"]) == ("claude", True, "done")


def test_a_declined_call_names_the_command_that_allows_it(gate: GateOf) -> None:
    declined = gate()
    declined.open()
    declined.call(2)
    declined.send("ping", id=3)
    answers = {answer["id"]: answer for answer in (declined.read(), declined.read())}
    assert answers[2]["result"]["isError"]
    assert "mcphost allow echo:echo" in words_of(answers[2])
    assert [each["allowed"] for each in declined.audit] == [False]


def test_a_configuration_that_cannot_be_read_declines(gate: GateOf, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[policy\n")
    broken = gate("--as", "claude")
    broken.open()
    broken.call(2)
    assert "config.toml" in words_of(broken.read())
    broken.send("tools/list", id=3)
    assert broken.read()["result"]["tools"]


def options(config: Path | None) -> Namespace:
    return Namespace(config=config and str(config), state=None, agent=None)


def test_a_named_configuration_may_be_written_later(tmp_path: Path) -> None:
    path = tmp_path / "mcphost" / "config.toml"
    assert settings_of(options(path))[0].policy.allow == ()
    path.parent.mkdir()
    path.write_text('[policy]\nallow = ["claude>echo:*"]\n')
    config, files = settings_of(options(path))
    assert len(config.policy.allow) == 1
    assert path in files


def test_a_gate_reads_servers_that_mcphost_added(tmp_path: Path) -> None:
    (tmp_path / "servers.toml").write_text('[servers.git]\ncommand = "git-server"\n')
    assert list(settings_of(options(tmp_path / "config.toml"))[0].servers) == ["git"]


@pytest.mark.parametrize(("folder", "named"), [("usual", False), ("other", True)])
def test_only_another_state_folder_is_named(
    folder: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("platformdirs.user_state_path", lambda *args, **more: tmp_path / "usual")
    words = allow_command(Namespace(state=str(tmp_path / folder), agent=None))
    assert (words[0] != "mcphost") == named


@pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")
def test_the_rules_decide_once_the_screen_is_killed(gate: GateOf, env: dict[str, str]) -> None:
    path = socket_path(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        held = gate("--as", "claude")
        screen, _ = listening.accept()
        lines = screen.makefile("rb")
        hello = link.read_from_gate(lines.readline())
        assert isinstance(hello, link.Hello)
        assert (hello.role, hello.name, hello.given) == ("gate", "echo", "claude")
        screen.sendall(link.Welcome().line())
        held.open()
        held.call(2, "first")
        asked = next_message(lines, link.CallAsked)
        assert (asked.arguments, asked.definition and asked.definition["name"]) == ({"text": "first"}, "echo")
        held.send("ping", id=3)
        assert held.read()["id"] == 3  # it flows while the call is held
        screen.sendall(link.CallDecided(call=asked.call, allow=True, arguments={"text": "edited"}, by="user").line())
        assert "edited" in json.dumps(held.read())
        held.call(4, "second")
        next_message(lines, link.CallAsked)
        lines.close()
        screen.shutdown(socket.SHUT_RDWR)
        screen.close()
    assert words_of(held.read()) == "second"
    assert [each["event"] for each in held.audit][-1:] in (["decision"], ["outcome"])


def next_message(lines: Any, kind: type[Any]) -> Any:
    """The next message of this kind; copies and others are skipped."""
    while True:
        message = link.read_from_gate(lines.readline())
        if isinstance(message, link.MessageCopy):
            lines.read(message.size)
        elif isinstance(message, kind):
            return message


def test_an_address_is_gated_and_its_headers_stay_secret(gate: GateOf, env: dict[str, str]) -> None:
    env["DOCS_TOKEN"] = token = "c4nary-t0ken"
    with Web(Echo(listens=False)) as web:
        gated = gate("--as", "claude", "--bearer-env", "DOCS_TOKEN", runs=[web.url])
        gated.open()
        gated.call(2, token)
        assert words_of(gated.read()) == token
        assert gated.end() == 0
        assert {each.headers["authorization"] for each in web.visits} == {f"Bearer {token}"}
    decision, outcome = gated.audit
    assert (decision["tool"], decision["allowed"], outcome["outcome"]) == ("echo", True, "done")
    kept = [each.read_bytes() for each in gated.state.rglob("*") if each.is_file()]
    assert any(b"tools/call" in each for each in kept)
    assert not any(token.encode() in each for each in kept)
    assert gated.process.stderr is not None
    assert gated.process.stderr.read() == b""


def test_a_line_for_the_screen_holds_no_header() -> None:
    masked = _masking(["Bearer c4nary-t0ken"])
    assert masked(b'{"a":"x c4nary-t0k\\u0065n"}') == '{"a":"x •••"}'.encode()
    assert masked(b"\xff plain") == b"\xff plain"
    kept: list[CopiedLine | None] = []
    observer = Observer(bytes, str, lambda: kept.append)
    observer.masked = masked
    observer._copy(CopiedLine("server", 1.0, b"my c4nary-t0ken is longer", 25, 0))
    (line,) = filter(None, kept)
    assert (line.data, line.size) == ("my ••• is longer".encode(), len(line.data))


def test_a_screen_learns_the_values_of_headers_to_mask() -> None:
    address = GatedAddress("https://docs.example/mcp", {"Authorization": "Bearer c4nary-t0ken"})
    options = Namespace(name="docs", agent="claude", config=None, state=None)
    hello = link.read_from_gate(_Decider(Shim([address.url]), address, options, "agent").observer._hello())
    assert isinstance(hello, link.Hello)
    assert (hello.secrets, "c4nary" in repr(hello)) == (["Bearer c4nary-t0ken"], False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--header-env", "X", "https://x.example"], "write HEADER=VARIABLE"),
        (["--header-env", "X=NOT_SET", "https://x.example"], "NOT_SET is not set, or empty"),
        (["--header-env", "Mcp-Session-Id=HOME", "https://x.example"], "the protocol sets this header itself"),
        (["--bearer-env", "HOME", "--header-env", "authorization=HOME", "https://x.example"], "both give the header"),
        (["--bearer-env", "HOME", "--", "cat"], "are for an address"),
        (["https://u:p@x.example"], "must not hold a user name or password"),
        (["https://x.example/?api_key=abcdef"], "the address holds a secret"),
        (["https://x.example", "more"], "put -- before the program"),
    ],
)
def test_a_wrong_address_is_explained(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_signal_ends_the_gate_with_its_server(gate: GateOf) -> None:
    ended = gate()
    ended.open()
    ended.process.send_signal(signal.SIGTERM)
    assert ended.process.wait(20) == 128 + signal.SIGTERM


def test_a_wrong_option_is_explained(gate: GateOf) -> None:
    wrong = gate("--answer-within", "soon")
    assert wrong.process.wait(20) == 2
    assert wrong.process.stderr is not None
    assert b"--answer-within 'soon'" in wrong.process.stderr.read()
