"""Puts mcphost between an agent and a server's program, and holds tool calls until they are decided."""

from __future__ import annotations

import os
import sys

from mcphost.cli.commands.tap import name_of
from mcphost.cli.observing import check_redactions, observer_of
from mcphost.cli.screen_socket import environment_of
from mcphost.shim import LineFilter, Shim, StartFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from argparse import Namespace
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from mcphost.cli.addresses import GatedAddress
    from mcphost.composition.gate_decisions import GateDecisions
    from mcphost.config import Config
    from mcphost.serving.gate import AgentIntroduced, GateAction, Questions
    from mcphost.serving.gate_pump import GatePump
    from mcphost.shim import Observer

NOTE_CHARACTERS = 2000
"""Characters of a sentence for the agent's log, which may quote others."""

CLOSE_SECONDS = 2.0
"""Seconds at the end for what is still to be written to the audit log."""


def run_gate(options: Namespace) -> int:
    """Run the program of ``options`` until it ends, or speak to the address there.

    Raises UsageError without either, or for a wrong option.
    """
    within = _seconds(options.answer_within)
    questions = _questions(options.questions)
    check_redactions(options)
    program = getattr(options, "program", None) or ()
    given = getattr(options, "header_env", None) or getattr(options, "bearer_env", None)
    address = None
    if given or [each[:4].lower() for each in (*options.words, *program)] == ["http"]:
        from mcphost.cli.addresses import address_of  # late: a program starts before

        address = address_of(options, os.environ)
    if address is None and (options.words or not program):
        from mcphost.errors import UsageError

        raise UsageError("put -- before the program, as in: mcphost gate -- uvx mcp-server-git")
    shim = Shim(options.program) if address is None else _address_shim(address, options)
    try:
        shim.start()
    except StartFailure as failure:
        sys.stderr.write(f"mcphost: {failure}\n")
        return failure.code
    # From here on the program runs, and loads while we do.
    from mcphost.serving.gate import GateOptions
    from mcphost.serving.gate_pump import GatePump, answers_of

    decider = _Decider(shim, address, options, questions)
    observer = shim.observer = decider.observer
    gate = GatePump(
        GateOptions(options.agent or "", within, questions, answers_of(questions)),
        shim.to_server.put,
        shim.to_agent.put,
        observer.take,
        _note,
        decider,
    )
    observer.open()
    decider.start(gate)
    code = shim.run(_GateFilter(shim, gate))
    decider.close()
    observer.close()
    return code


class _GateFilter(LineFilter):
    """Has a gate decide what a shim passes on."""

    def __init__(self, shim: Shim, gate: GatePump) -> None:
        super().__init__(shim)
        self.gate = gate

    def from_agent(self, line: bytes, whole: bool) -> None:
        self.gate.from_agent(line, whole)

    def from_server(self, line: bytes, whole: bool) -> None:
        self.gate.from_server(line, whole)

    def agent_closed(self) -> None:
        self.gate.agent_closed()

    def server_closed(self) -> None:
        self.gate.server_closed()


class _Decider:
    """Hands what a gate asks to a thread with an event loop, which loads the policy beside the server."""

    def __init__(self, shim: Shim, address: GatedAddress | None, options: Namespace, questions: Questions) -> None:
        import threading

        self._shim, self._address, self._options, self._env = shim, address, options, environment_of(options)
        self._name = _name_of(options, shim, address)
        self._lock = threading.Lock()
        self._early: list[GateAction | None] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._actions: asyncio.Queue[GateAction | None] | None = None
        self._queued = 0
        self._ready: GateDecisions | None = None
        self._introduced: AgentIntroduced | None = None
        self._names = sorted(name[:200] for name in (os.environ if address is None else address.headers))[:4096]
        self._headers = () if address is None else tuple(address.headers.values())
        more: dict[str, object] = {"questions": questions, "names": self._names}
        if address is not None:
            from mcphost.serving.link import SECRET, SECRETS  # late: a program's gate starts without

            secrets = [value for value in self._headers if len(value) <= SECRET][:SECRETS]
            more |= {"command": None, "url": address.url, "child": None, "secrets": secrets}
        self.observer: Observer = observer_of("gate", self._name, shim, options, more, self._after_hello, self._headers)
        if self._headers:
            self.observer.masked = _masking(self._headers)
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)

    def start(self, gate: GatePump) -> None:
        self._gate = gate
        self._thread.start()

    def take(self, action: GateAction) -> None:
        from mcphost.serving.gate import AgentIntroduced

        if isinstance(action, AgentIntroduced):
            self._introduced = action
        decisions = self._ready
        # A thread that is woken for each call takes as long as the decision. What waits goes first.
        if decisions is None or decisions.handled != self._queued or not decisions.handle_at_once(action):
            self._put(action)

    def close(self) -> None:
        """Wait until all that came is handled."""
        self._put(None)
        self._thread.join(CLOSE_SECONDS)

    def _put(self, action: GateAction | None) -> None:
        from threading import get_ident

        with self._lock:
            self._queued += 1
            if self._loop is None or self._actions is None:
                self._early.append(action)
            elif get_ident() == self._thread.ident:
                self._actions.put_nowait(action)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._actions.put_nowait, action)

    def _after_hello(self) -> bytes:
        """The agent's name, for a screen that starts later."""
        if (named := self._introduced) is None:
            return b""
        from mcphost.serving.link import AgentNamed

        return AgentNamed(name=named.name, version=named.version, era=named.era, revision=named.revision).line()

    # The thread.

    def _run(self) -> None:
        import asyncio

        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        asyncio.run(self._follow(self._decisions()))

    async def _follow(self, decisions: GateDecisions) -> None:
        import asyncio

        actions: asyncio.Queue[GateAction | None] = asyncio.Queue()
        with self._lock:
            for action in self._early:
                actions.put_nowait(action)
            self._loop, self._actions, self._ready = asyncio.get_running_loop(), actions, decisions
        await decisions.run(actions)

    def _decisions(self) -> GateDecisions:
        from mcphost.cli.agent_settings import allow_command
        from mcphost.composition.gate_decisions import GateDecisions, LocalConsent
        from mcphost.config import state_folder
        from mcphost.config.gated import GatedProgram
        from mcphost.errors import ConfigError
        from mcphost.host.agents.gated_calls import GatedServer
        from mcphost.host.agents.kernel_facts import agent_of, caller_of
        from mcphost.host.traffic.spool import mask_of
        from mcphost.places import socket_path

        options, shim, env = self._options, self._shim, self._env
        try:
            socket: Path | None = socket_path(env)
        except ConfigError:
            socket = None
        folder = os.getcwd()
        agent = agent_of(caller_of(os.getpid()), options.agent or "")
        local = LocalConsent(
            lambda: settings_of(options),
            lambda: state_folder(env),
            env,
            allow_command(options),
            mask_of(os.environ, shim.command, self._headers),
            _note,
        )
        if self._address is None:
            runs = GatedProgram(tuple(shim.command), folder=folder, names=frozenset(os.environ))
        else:
            runs = GatedProgram(url=self._address.url, folder=folder, names=frozenset(self._names))
        server = GatedServer(self._name, runs)
        return GateDecisions(self._gate, self.observer, socket, server, agent, local, self._disconnect)

    def _disconnect(self) -> None:
        from threading import Thread

        Thread(target=self._shim.end, name="disconnect", daemon=True).start()


def _name_of(options: Namespace, shim: Shim, address: GatedAddress | None) -> str:
    return name_of(options, shim) if address is None else options.name or address.host


def _address_shim(address: GatedAddress, options: Namespace) -> Shim:
    from contextlib import suppress

    from mcphost.cli.addresses import AddressShim
    from mcphost.errors import McphostError
    from mcphost.host.traffic.spool import mask_of

    def advice() -> str:
        words = "a gate does not sign in; give it a token with --bearer-env, or another header with --header-env"
        name = options.name or address.host
        with suppress(McphostError):
            entry = settings_of(options)[0].servers.get(name)
            if entry is not None and entry.url == address.url and entry.signs_in:
                return f"{words}; mcphost itself signs in to your own entry: mcphost login {name}"
        return words

    return AddressShim(address, advice, mask_of(os.environ, (), tuple(address.headers.values())))


def _masking(headers: Collection[str]) -> Callable[[bytes], bytes]:
    """Removes the values of headers from a line for the screen: the server may have repeated them."""
    from mcphost.host.traffic.spool import mask_of
    from mcphost.redaction import redacted

    mask = mask_of({}, (), headers)

    def masked(line: bytes) -> bytes:
        text = line.decode("utf-8", "replace")
        hidden = redacted(text, mask)
        return line if hidden == text else hidden.encode()

    return masked


def settings_of(options: Namespace) -> tuple[Config, Sequence[Path]]:
    """The user's configuration and the files that it is read from, there or not. Raises ConfigError."""
    from mcphost.cli.agent_settings import agent_settings

    found, files = agent_settings(options)
    return found.loaded.config, files


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        from mcphost.errors import UsageError

        raise UsageError(f"--answer-within {text!a} is not a number of seconds, such as 50")
    return seconds


def _questions(text: str | None) -> Questions:
    if text is None or text == "agent":
        return "agent"
    if text == "here":
        return "here"
    if text == "both":
        return "both"
    from mcphost.errors import UsageError

    raise UsageError(f"--questions {text!a}: write agent, here or both")


def _note(text: str) -> None:
    from mcphost.protocol.display import show_line  # late: the program starts before

    sys.stderr.write(f"mcphost gate: {show_line(text, NOTE_CHARACTERS)}\n")
    sys.stderr.flush()
