"""The composition root builds transports from the configuration."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from keyring.backend import KeyringBackend

from mcphost import composition
from mcphost.auth.storage.keychain import TRUSTED
from mcphost.composition import lookup
from mcphost.config import Config, GivenServer, ServerConfig, Values, parse
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, SpawnFailed, UnresolvedReference
from mcphost.host.consent.questions import DeclineAll
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, Revision
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from mcphost.transports.stdio.transport import StdioTransport
from tests.conftest import Until
from tests.transports.http.http_connection import Echo, Talk, Web, WebLine

NOBODY = DeclineAll("nobody")


async def test_a_program_gets_the_limits_of_its_own_entry() -> None:
    text = """
[servers.a]
command = "x"
limits = { message_bytes = 5000, exit_grace_sec = 0.5, json_depth = 8 }
[limits]
batch_items = 7
"""
    config = parse(text).config
    transport = await composition.dependencies(NOBODY, Values({})).open_transport(config, "a")
    assert isinstance(transport, StdioTransport)
    limits = transport.limits
    assert (limits.message_bytes, limits.exit_grace, limits.batch_items, limits.json_depth) == (5000, 0.5, 7, 8)


@pytest.mark.hostile("J01", "H07")
async def test_a_program_has_the_same_limits_where_nobody_sets_any() -> None:
    """24 MB for a message, however it comes."""
    transport = await composition.dependencies(NOBODY, Values({})).open_transport(
        parse('[servers.a]\ncommand = "x"').config, "a"
    )
    assert isinstance(transport, StdioTransport)
    assert transport.limits == TransportLimits()
    assert transport.limits.message_bytes == 24_000_000


@pytest.mark.requirement("TRANS-02", "TRANS-03", "TRANS-04")
async def test_the_transports_are_those_of_the_specification_and_no_others() -> None:
    """None of our own making, whose framing or sign-in would have to be described and reviewed."""
    url, program = ServerConfig(url="https://h/mcp"), composition.server_from_argument("stdio:x y")
    kinds = get_args(ServerConfig.model_fields["transport"].annotation)
    chosen = {kind: (program if kind == "stdio" else url).model_copy(update={"transport": kind}) for kind in kinds}
    config = Config(servers={**chosen, "program": program})
    opened = composition.dependencies(NOBODY, Values({})).open_transport
    assert {name: type(await opened(config, name)) for name in config.servers} == {
        "auto": DetectedTransport,  # one of the next two, by the server's first answer
        "http": HttpTransport,
        "sse": SseTransport,
        "stdio": StdioTransport,
        "program": StdioTransport,
    }


async def test_an_unresolved_reference_is_reported_until_it_is_set() -> None:
    refused: dict[str, ConfigError] = {}
    env: dict[str, str] = {}
    parts = composition.dependencies(NOBODY, Values(env), refused=refused)
    web = ServerConfig(url="https://h/mcp", bearer_token_env_var="NOT_SET_ANYWHERE")
    config = Config(servers={"a": ServerConfig(command="${PROGRAM}"), "web": web})
    with pytest.raises(UnresolvedReference):
        await parts.open_transport(config, "a")
    with pytest.raises(UnresolvedReference, match=r"servers\.web\.bearer_token_env_var"):
        await parts.open_transport(config, "web")
    assert refused.keys() == {"a", "web"}
    env["PROGRAM"] = "x"
    await parts.open_transport(config, "a")
    assert refused.keys() == {"web"}


Install = Callable[[str, Callable[[], str | None]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install(name, ask)`: a module of this name has a backend of the keyring library that ``ask`` answers for."""

    def installed(name: str, ask: Callable[[], str | None]) -> None:
        class Keyring(KeyringBackend):
            priority = 9.0

            def get_password(self, service: str, username: str) -> str | None:
                return ask()

            def set_password(self, service: str, username: str, password: str) -> None:
                raise NotImplementedError

        Keyring.__module__ = name
        module = ModuleType(name)
        vars(module)["Keyring"] = Keyring
        monkeypatch.setitem(sys.modules, name, module)

    return installed


ASKING = Config(servers={"a": ServerConfig(command="x", env={"T": "${keyring:t}"})})
REAL = TRUSTED[0]


async def test_a_silent_keychain_delays_one_server_and_no_exit(
    install: Install, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    asked, never = threading.Event(), threading.Event()

    def ask() -> None:
        asked.set()
        never.wait(30)

    install(REAL, ask)
    monkeypatch.setattr(lookup, "LOOKUP_SECONDS", 0.05)
    with pytest.raises(ConfigError, match=r"servers\.a: its values were not found within 0\.05 s"):
        await composition.dependencies(NOBODY, composition.values_for(ASKING, {})).open_transport(ASKING, "a")
    await until(asked.is_set)
    never.set()
    await asyncio.sleep(0)


@pytest.mark.parametrize("module", ["keyrings.alt.file", "keyring.backends.null", "keyring.backends.fail", ""])
def test_a_reference_is_not_looked_up_where_anybody_could_read_it(install: Install, module: str) -> None:
    """Not in a plain file, nor where nothing is kept, whatever the environment chooses; as it is for tokens."""
    if module:
        install(module, lambda: "hunter2")
    why = "the keychain could not be asked for t: this system has no keychain that mcphost knows; use an environment va"
    with pytest.raises(ConfigError, match=why):
        composition.values_for(ASKING, {}).resolve("${keyring:t}", "x")
    install(REAL, lambda: "kept")
    assert composition.values_for(ASKING, {}).resolve("${keyring:t}", "x") == "kept"


def test_a_state_file_is_written_only_when_it_changes(tmp_path: Path) -> None:
    files = StateStore(tmp_path, lambda text: None)
    file = tmp_path / "approvals.toml"
    assert files.read("approvals") == {}
    files.update("approvals", lambda data: {"approval": []})
    assert not file.exists()
    files.update("approvals", lambda data: {"approval": [{"a": 1}]})
    written = file.stat().st_ino
    files.update("approvals", dict)
    assert file.stat().st_ino == written
    files.update("approvals", lambda data: {"approval": []})
    assert StateStore(tmp_path, lambda text: None).read("approvals") == {"approval": []}


@pytest.mark.parametrize(
    ("argument", "command", "args"),
    [
        ("stdio:python server.py", "python", ("server.py",)),
        ("stdio:'my server' --flag 'a b' \"\"", "my server", ("--flag", "a b", "")),
        ("stdio: x ", "x", ()),
    ],
)
def test_a_command_line_is_split_as_a_shell_would(argument: str, command: str, args: tuple[str, ...]) -> None:
    server = composition.server_from_argument(argument)
    assert (server.command, server.args) == (command, args)
    assert server == GivenServer(command=command, args=args)


@pytest.mark.hostile("P05")
def test_a_server_without_an_entry_never_takes_the_name_of_one() -> None:
    """Rules and approvals of an entry are not for whatever the command line runs."""
    loaded = parse('[servers.stdio]\ncommand = "x"\n[servers.stdio-2]\ncomand = "y"\n')
    chosen = composition.select(loaded, ["stdio:a", "stdio", "stdio:b", "stdio:a"])
    assert chosen.names == ("stdio-3", "stdio", "stdio-4")
    assert chosen.config.servers["stdio"].command == "x"


async def test_the_demo_server_ignores_the_working_directory(tmp_path: Path) -> None:
    """`mcphost demo` runs no module of the working folder."""
    evil = tmp_path / "mcphost"
    evil.mkdir()
    (evil / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    demo = composition.demo_config().servers["demo"]
    assert demo.command == sys.executable
    process = await asyncio.create_subprocess_exec(
        demo.command, *demo.args, cwd=tmp_path, stdin=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    assert not (tmp_path / "ran").exists()


async def test_a_program_that_is_missing_fails_when_it_is_opened(tmp_path: Path) -> None:
    config = Config(servers={"a": ServerConfig(command="no-such-program", cwd=str(tmp_path))})
    transport = await composition.dependencies(NOBODY, Values({})).open_transport(config, "a")
    with pytest.raises(SpawnFailed):
        await transport.open(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "made"), [("auto", "DetectedTransport"), ("http", "HttpTransport"), ("sse", "SseTransport")]
)
async def test_a_url_is_spoken_to_over_http(kind: str, made: str) -> None:
    server = ServerConfig.model_validate({"url": "http://127.0.0.1:9/mcp", "transport": kind})
    transport = await composition.dependencies(NOBODY, Values({})).open_transport(
        Config(servers={"web": server}), "web"
    )
    assert type(transport).__name__ == made


HEADERS = {"authorization": "Bearer token-of-mine", "x-api-key": "key-of-mine", "x-plain": "as it stands"}


@pytest.mark.requirement("AUTH-25", "AUTH-17")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)
@pytest.mark.parametrize("given", list(HEADERS))
async def test_a_configured_header_is_sent_and_prevents_a_sign_in(revision: Revision, given: str) -> None:
    """A server that wants its own key in a header is served on each revision, over each transport it may have."""
    old, header = revision is HANDSHAKE_REVISIONS[0], {given: HEADERS[given]}
    echo = Echo(old=old, protocol=revision.version)

    def serve(talk: Talk) -> None:
        if header.items() <= talk.visit.headers.items():
            echo(talk)
        else:
            talk.whole(401, www_authenticate="Bearer")

    entries: dict[str, dict[str, Any]] = {
        "authorization": {"bearer_token_env_var": "TOKEN"},
        "x-api-key": {"env_http_headers": {"X-Api-Key": "KEY"}},
        "x-plain": {"http_headers": {"X-Plain": "as ${HOW} stands"}},
    }
    env = {"TOKEN": "token-of-mine", "KEY": "key-of-mine", "HOW": "it"}
    with Web(serve) as web:
        server = ServerConfig.model_validate({"url": web.url, **entries[given]})
        opener = composition.dependencies(NOBODY, Values(env)).open_transport
        line = WebLine(web, await opener(Config(servers={"web": server}), "web"))
        try:
            await line.transport.open(line.inbox)
            await line.shake_hands(revision)
            assert await line.call("echo", text="x") == "x"
        finally:
            await line.transport.aclose()
        assert {visit.path for visit in web.visits} <= {"/mcp", "/messages?session=old%2F1"}
        assert all(header.items() <= visit.headers.items() for visit in web.visits)
        assert {visit.method for visit in web.visits} == ({"POST", "GET"} if old else {"POST", "DELETE"})
