"""The card of a server in groups: state, process, protocol, consent and model usage."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.worker import Worker

from mcphost.config import RecordedServer
from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.connections.keepalive import RoundTrip
from mcphost.host.connections.process_usage import UsageReading
from mcphost.host.consent.locked_tools import LockStatus, lock_status
from mcphost.host.consent.policy import PolicyDecision, SamplingPolicy, sampling_policy
from mcphost.host.host import Host
from mcphost.host.server_requests.roots import OfferedRoot, SentRoots
from mcphost.host.tool_calls.tasks import keeps_tasks, tasks_withheld
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import age_text, duration_text, show, show_line, size_text
from mcphost.protocol.models.initialization import Implementation
from mcphost.tui.kit.clock import freshness_text
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.marks import SERVER_MARKS
from mcphost.tui.kit.messages import (
    BudgetRequested,
    IdentitiesRequested,
    MuteToggled,
    RelistRequested,
    RootsRequested,
    SignInRequested,
)
from mcphost.tui.roots.facts import folder_words, last_request_words
from mcphost.tui.sampling.request_facts import has_budget, usage_words
from mcphost.tui.servers.sharing import sharing_facts
from mcphost.tui.sign_in.status import NOT_SIGNED_IN, SignInSummary, key_of, sign_in_facts
from mcphost.tui.textual_private.corrections import ScrolledColumn

if TYPE_CHECKING:
    from mcphost.host.connections.instances import SharingReport
    from mcphost.host.connections.listings import Listing
    from mcphost.host.sampling.budgets import SamplingUsage


@dataclass(frozen=True, slots=True)
class ProgramUsage:
    """There is a program to measure; ``reading`` is the last one, None before the first."""

    reading: UsageReading | None


def usage_facts(program: ProgramUsage | None) -> Iterator[Fact]:
    """Memory, processes and processor; nothing for a server that mcphost did not start."""
    if program is None:
        return
    if program.reading is None:
        yield fact("memory, CPU", "not measured yet: u measures")
        return
    reading = program.reading
    usage = reading.usage
    several = f" in {usage.processes} processes" if usage.processes > 1 else ""
    words = f"{size_text(usage.memory)}{several} · {reading.share:.0%} of a CPU"
    yield fact("memory, CPU", words, "$text-warning" if reading.too_large or reading.busy else "")
    if reading.busy:
        yield fact("", "▲ it keeps a CPU busy", "$text-warning")
    if reading.too_large:
        yield fact("", f"▲ {reading.too_large}", "$text-warning")


LEFT_OUT: Final = 20
"""Items of a list that are named as left out."""

SHOWN: Final = 6
"""Roots on the card."""


@dataclass(frozen=True, slots=True)
class ServerQuestions:
    """The server's questions, roots, and use of language models."""

    muted: bool = False
    waiting: int = 0
    folders: tuple[OfferedRoot, ...] = ()
    sent_roots: SentRoots | None = None
    rule: SamplingPolicy | None = None
    """The policy for its sampling requests; None if the capability is not declared to it."""
    sampling_usage: SamplingUsage | None = None
    lock: LockStatus | None = None
    """None without ``[policy] lock``, and while the server is not connected."""


NO_QUESTIONS: Final = ServerQuestions()


def questions_of(host: Host, server: str) -> ServerQuestions:
    if server not in host.servers:
        return ServerQuestions()
    settings = host.config.servers.get(server)
    rule = sampling_policy(host.config, server) if settings and settings.capabilities.sampling else None
    waiting, sampling_usage = host.pending_requests.waiting(server), host.sampling.usage(server)
    connection = host.servers[server]
    skills = (each.skill for each in host.catalog.skills(server))
    lock = None
    if connection.ready:
        lock = lock_status(host.config, server, connection.config.identity, connection.tools, skills)
    return ServerQuestions(
        host.pending_requests.muted(server),
        waiting,
        host.roots.offered(server),
        host.roots.sent(server),
        rule,
        sampling_usage,
        lock,
    )


def consent_facts(server: str, questions: ServerQuestions, now: float) -> Iterator[Fact]:
    """The pending requests and the roots of a server."""
    if questions.muted:
        yield fact("requests", "muted: all are declined until mcphost exits. M unmutes", "bold $text-warning")
    elif questions.waiting:
        yield fact("requests", f"{questions.waiting} waiting for you: f2 lists them, M declines all", "$text-warning")
    else:
        yield fact("requests", "none pending. M mutes the server: all are declined until mcphost exits")
    if questions.lock is not None:
        yield lock_fact(questions.lock)
    for number, folder in enumerate(questions.folders[:SHOWN]):
        yield Fact("" if number else "roots", folder_words(folder, server))
    if not questions.folders:
        yield fact("roots", "none: f chooses folders to share")
    elif len(questions.folders) > SHOWN:
        yield fact("", f"and {len(questions.folders) - SHOWN} more: f lists all")
    yield fact("", f"last requested: {last_request_words(questions.sent_roots, now)}", "$foreground-muted")


def lock_fact(status: LockStatus) -> Fact:
    """The comparison with the lock of the policy."""
    file = show_line(status.lock, 60)
    if status.as_locked:
        return fact("lock", f"as locked in {file}")
    if status.why:
        return fact(
            "lock", f"▲ {show_line(status.why, 120)}: its tools are not offered. K compares", "bold $text-warning"
        )
    counts = ((status.differing, "tool"), (status.skills, "skill"))
    which = " and ".join(f"{count} {word if count == 1 else f'{word}s'}" for count, word in counts if count)
    differ, are = ("differs", "is") if status.differing + status.skills == 1 else ("differ", "are")
    return fact("lock", f"▲ {which} {differ} from {file} and {are} not offered. K compares", "bold $text-warning")


def model_facts(questions: ServerQuestions) -> Iterator[Fact]:
    """The rule for sampling requests of a server, and their usage."""
    if questions.rule is None or questions.sampling_usage is None:
        yield fact("sampling", "off: capabilities.sampling in its entry")
        return
    words = _POLICY_WORDS[questions.rule.decision, questions.rule.review]
    yield fact("sampling", f"{words} · {show_line(questions.rule.rule, 80)}")
    yield fact("used", f"{usage_words(questions.sampling_usage)} (this run)")
    if questions.sampling_usage.paused:
        yield fact("▲ paused", f"{show_line(questions.sampling_usage.paused, 120)}: b continues", "bold $text-warning")


_POLICY_WORDS: Final[Mapping[tuple[PolicyDecision, bool], str]] = {
    (PolicyDecision.ASK, True): "you approve each request and each answer",
    (PolicyDecision.ASK, False): "you approve each request; answers are sent at once",
    (PolicyDecision.ALLOW, True): "requests are allowed; you approve each answer",
    (PolicyDecision.ALLOW, False): "requests are allowed and answered without asking you",
    (PolicyDecision.DENY, True): "all requests are declined",
    (PolicyDecision.DENY, False): "all requests are declined",
}
"""The handling of sampling requests."""


EMPTY = "Choose a server (s) and press enter: its state, process, capabilities and errors appear here."

STDERR_LINES: Final = 10
"""Last lines of stderr that are shown of a failure."""

MEASURE_INTERVAL: Final = 2.0
"""Seconds for which a card that is drawn again does not measure the program again."""

NEXT_STEPS = {
    ServerState.FAILED: "r retries now",
    ServerState.STOPPED: "r connects",
    ServerState.DISABLED: "r connects for this run; enabled = true in its entry connects always",
}


_RETRIED: Final = (ServerState.FAILED, ServerState.RECONNECTING)


class ServerCard(ScrolledColumn):
    HELP = "A server's card: its state and last failure, process, protocol, consent and model usage."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P", "ping", "ping", id="card.ping", tooltip="Ping the server, and time the answer"),
        Binding("r", "restart", "restart", id="card.restart", tooltip="Restart the server"),
        Binding("r", "retry", "retry", id="card.retry", tooltip="Retry now"),
        Binding("T", "screen.tasks", "tasks", id="card.tasks", tooltip="List its tasks: calls that it answers later"),
        Binding("S", "sign_in", "sign in", id="card.sign-in", tooltip="Sign in to this server, or show the sign-in"),
        Binding("S", "sign_out", "sign out", id="card.sign-out", tooltip="Forget its tokens; asks first"),
        Binding("D", "identities", "identities", id="card.identities", tooltip="List the identities that sign in"),
        Binding("F", "forget", "forget", id="card.forget", tooltip="Forget everything about this server; asks first"),
        Binding("f", "folders", "roots", id="card.folders", tooltip="Choose its roots: the folders it may use"),
        Binding("M", "mute", "mute", id="card.mute", tooltip="Decline all it asks until mcphost exits, or unmute it"),
        Binding("b", "budget", "budget", id="card.budget", tooltip="Raise its model budget; asks first"),
        Binding("C", "eras", "eras", id="card.eras", tooltip="Open it in both eras, and compare them"),
        Binding("K", "lock", "lock", id="card.lock", tooltip="Compare it with mcphost.lock"),
        Binding("L", "relist", "list again", id="card.relist", tooltip="List again what it offers, not from the cache"),
        Binding("O", "share", "share", id="card.share", tooltip="Let all agents share one server until mcphost exits"),
        Binding("O", "unshare", "own each", id="card.unshare", tooltip="Give each agent's session a server of its own"),
        Binding("u", "usage", "refresh", id="card.usage", tooltip="Measure its memory and CPU again"),
        Binding("y", "copy", "copy", id="card.copy", tooltip="Copy the card as text"),
    ]

    DEFAULT_CSS = """
    ServerCard {
        border: round $border-blurred; border-title-color: $foreground-muted;
        padding: 0 1; scrollbar-size-vertical: 1; &:focus { border: round $border; }
    }
    """

    class UsageRead(Message):
        """The use of memory and processor was measured."""

    @dataclass
    class SignOutRequested(Message):
        server: str

    @dataclass
    class ErasRequested(Message):
        server: str

    @dataclass
    class LockRequested(Message):
        server: str

    @dataclass
    class ForgetRequested(Message):
        server: str

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._connection: Connection | None = None
        self._pingable: str | None = None
        self._shown: tuple[str, str, bool] = ("", "", False)
        self._muted = self._budget = self._locked = False
        self._shares: bool | None = None
        """True if agents share the server; None while none has come."""
        self._program: str | None = None
        self._measured = ("", 0.0)
        self._facts = FactsTable([Fact("", Content(EMPTY), wide=True)])

    def compose(self) -> ComposeResult:
        yield self._facts

    def show_server(
        self,
        connection: Connection | None,
        now: float,
        dropped: int = 0,
        sign_in: SignInSummary = NOT_SIGNED_IN,
        questions: ServerQuestions = NO_QUESTIONS,
        program: ProgramUsage | None = None,
        sharing: SharingReport | None = None,
    ) -> None:
        """Draw this server's card; ``now`` is a monotonic time, ``dropped`` counts log lines above the rate.

        ``program`` is the use of its program; None without a program. ``sharing`` is its use by agents.
        """
        self._connection = connection
        self.border_title = "Server" if connection is None else Content(f"Server · {connection.name}")
        nothing = [Fact("", Content(EMPTY), wide=True)]
        self._facts.show_facts(
            nothing if connection is None else card(connection, now, dropped, sign_in, questions, program, sharing)
        )
        self._program = connection.name if connection is not None and program is not None else None
        self._measure_again()
        self._muted = questions.muted
        self._locked = questions.lock is not None
        self._budget = questions.sampling_usage is not None and has_budget(questions.sampling_usage)
        answering = connection.name if connection is not None and connection.ready else None
        shown = ("", "", False)
        if connection is not None:
            shown = (connection.name, key_of(connection, sign_in), connection.state in _RETRIED)
        shares = None if sharing is None else sharing.share == "all"
        if (answering, shown, shares) != (self._pingable, self._shown, self._shares):
            self._pingable, self._shown, self._shares = answering, shown, shares
            if self.is_attached:  # the card may be removed before its servers when mcphost exits
                self.refresh_bindings()

    @property
    def text(self) -> str:
        """The card without styles, its lines unwrapped."""
        return self._facts.text

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("sign_in", "sign_out"):
            return action == self._shown[1]
        if action == "identities":
            return self._connection is not None and self._connection.config.oauth.grant == "enterprise"
        if action == "budget":
            return self._budget
        if action == "lock":
            return self._locked
        if action in ("restart", "retry"):
            return bool(self._shown[0]) and self._shown[2] == (action == "retry")
        if action in ("share", "unshare"):
            return self._shares is (action == "unshare")
        if action in ("forget", "folders", "mute", "eras"):
            return bool(self._shown[0])
        if action == "usage":
            return self._program is not None or self._shares is not None
        return self._pingable is not None if action in ("ping", "relist") else True

    def on_show(self) -> None:
        if self._is_outdated():
            self.action_usage()

    def action_usage(self) -> None:
        """Measure the memory and processor use of the server's program."""
        if self._connection is not None and self.check_action("usage", ()):
            self._measured = (self._program or "", time.monotonic())
            work = partial(self._read_usage, self._connection)
            _: Worker[None] = self.run_worker(work, group="usage", exclusive=True)

    async def _read_usage(self, connection: Connection) -> None:
        if self._shares is None:
            await self._host.process_usage.read(connection)
        else:
            await self._host.instances.measure(connection.name)
        self._measured = (connection.name, time.monotonic())  # however long it took, what draws it begins no other
        self.post_message(self.UsageRead())

    def _measure_again(self) -> None:
        """Measure again if the card is in view, but only when it is drawn anyway: nothing here polls."""
        if self._is_outdated() and self.is_on_screen:
            self.action_usage()

    def _is_outdated(self) -> bool:
        of, at = self._measured
        return of != self._program or time.monotonic() - at > MEASURE_INTERVAL

    def action_ping(self) -> None:
        if self._pingable is not None and self._connection is not None:
            self.app.run_worker(self._ping(self._connection))

    async def _ping(self, connection: Connection) -> None:
        try:
            await connection.ping()  # the card shows the round trip
        except McphostError as error:
            self.notify(show(f"{connection.name}: {error}", limit=400), severity="error", markup=False)

    def action_restart(self) -> None:
        if self._connection is not None:
            self._connection.restart()

    def action_relist(self) -> None:
        if self._pingable is not None:
            self.post_message(RelistRequested(self._pingable))

    def action_retry(self) -> None:
        self.action_restart()

    def action_sign_in(self) -> None:
        """Sign in, or show the sign-in that runs."""
        self.post_message(SignInRequested(self._shown[0]))

    def action_sign_out(self) -> None:
        """Ask the user, then sign out."""
        self.post_message(self.SignOutRequested(self._shown[0]))

    def action_identities(self) -> None:
        self.post_message(IdentitiesRequested())

    def action_eras(self) -> None:
        self.post_message(self.ErasRequested(self._shown[0]))

    def action_lock(self) -> None:
        self.post_message(self.LockRequested(self._shown[0]))

    def action_forget(self) -> None:
        """Ask the user, then forget everything about the server."""
        self.post_message(self.ForgetRequested(self._shown[0]))

    def action_folders(self) -> None:
        self.post_message(RootsRequested(self._shown[0]))

    def action_mute(self) -> None:
        """Decline everything the server asks, or ask the user again."""
        self.post_message(MuteToggled(self._shown[0], not self._muted))

    def action_budget(self) -> None:
        """Ask the user, then raise the server's sampling budget."""
        self.post_message(BudgetRequested(self._shown[0]))

    def action_share(self) -> None:
        """Let all agents share the server until mcphost exits."""
        self._host.instances.set_share(self._shown[0], "all")

    def action_unshare(self) -> None:
        """Give each session of an agent a server of its own until mcphost exits."""
        self._host.instances.set_share(self._shown[0], "session")

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)


def card(
    connection: Connection,
    now: float,
    dropped: int,
    sign_in: SignInSummary = NOT_SIGNED_IN,
    questions: ServerQuestions = NO_QUESTIONS,
    program: ProgramUsage | None = None,
    sharing: SharingReport | None = None,
) -> Iterator[Fact]:
    yield from _group("State", _state(connection, now), first=True)
    yield from _group("Sign-in", sign_in_facts(connection, sign_in))
    yield from _group("Process" if connection.config.url is None else "Connection", _process(connection, program))
    lists = _tools(connection), _skills(connection), _kept_lists(connection, now)
    yield from _group("Protocol", chain(_session(connection), *lists, _irregularities(connection, dropped)))
    yield from _group("Consent", consent_facts(connection.name, questions, now))
    yield from _group("Agents", sharing_facts(sharing))
    yield from _group("Model usage", model_facts(questions))
    yield from _instructions(connection)


def _group(title: str, facts: Iterable[Fact], *, first: bool = False) -> Iterator[Fact]:
    """The facts below their title; nothing without facts."""
    listed = list(facts)
    if not listed:
        return
    if not first:
        yield Fact("", Content(""), wide=True)
    yield Fact("", Content.styled(title, "bold $text-accent"), wide=True)
    yield from listed


def _state(connection: Connection, now: float) -> Iterator[Fact]:
    mark, style = SERVER_MARKS[connection.state]
    since = f" for {duration_text(now - connection.ready_at)}" if connection.ready and connection.ready_at else ""
    yield fact("state", f"{mark} {connection.state.value}{since}", style)
    if isinstance(connection.config, RecordedServer):
        yield fact("recording", show(f"of {connection.config.recording}", limit=600))
    if connection.reason:
        yield fact("reason", show(connection.reason, limit=2000), style)
    if connection.advice and connection.state is not ServerState.NEEDS_SIGN_IN:
        yield fact("what to do", connection.advice)
    if connection.retry_at is not None:
        yield fact("next retry", f"in {max(0.0, connection.retry_at - now):.0f} s; r retries now")
    elif connection.state in NEXT_STEPS:
        yield fact("next step", NEXT_STEPS[connection.state])
    if connection.restarts:
        yield fact("failures", str(connection.restarts))
    yield from _last_failure(connection, now)


def _last_failure(connection: Connection, now: float) -> Iterator[Fact]:
    """The last failure, its exit code and its last lines on stderr; also while the server is ready again."""
    last = connection.last_failure
    process = connection.process if last is None else last.process
    if last is not None and last.reason != connection.reason:
        yield fact("last failure", f"{age_text(now - last.at)}: {show(last.reason, limit=2000)}")
    if (connection.ready and last is None) or not (process.stderr_tail or process.exit_code is not None):
        return
    if process.exit_code is not None:
        yield fact("exit code", str(process.exit_code))
    tail = "\n".join(show_line(line, 400) for line in process.stderr_tail[-STDERR_LINES:]) or "(nothing)"
    yield Fact(f"Last lines of {connection.name} on stderr:", Content(tail), wide=True, mark="▏ ")


def _process(connection: Connection, program: ProgramUsage | None) -> Iterator[Fact]:
    label = "command" if connection.config.url is None else "URL"
    yield fact(label, show(connection.config.identity, limit=2000))
    if connection.ready_at is not None and connection.started_at is not None:
        yield fact("startup", duration_text(connection.ready_at - connection.started_at))
    if connection.ready and connection.keepalive.last is not None:
        yield fact("round trip", _round_trip(connection.keepalive.last, connection.config.ping_interval_sec))
    yield from usage_facts(program)


def _round_trip(last: RoundTrip, interval: float) -> str:
    took = duration_text(last.seconds) if last.seconds >= 0.001 else "under 1 ms"
    return f"{took} ({last.request}) · {f'every {duration_text(interval)}' if interval else 'P pings'}"


def _session(connection: Connection) -> Iterator[Fact]:
    if connection.session is None:
        return
    server = connection.session.server
    yield fact("server name", _identity(server.server_info))
    yield fact("revision", connection.session.revision.version)
    if found := opening_words(connection):
        yield fact("era", f"detected: {found}")
    yield fact("capabilities", capability_words(server.capabilities))
    if (listening := connection.listening) is not None:
        warns = "$text-warning" if listening.troubled else ""
        yield fact("announces", show_line(listening.words, 400), warns)
    if deprecated := deprecated_features(connection):
        yield fact("deprecated", f"{', '.join(deprecated)}: a later revision will no longer have them")
    if connection.level is not None:
        yield fact("log level", connection.level.wire)


def opening_words(connection: Connection) -> str:
    """Say how the revision of the server was found; empty if it was configured."""
    session, remembered = connection.session, connection.remembered_era
    if session is None:
        return ""
    if session.evidence:
        others = [version for version in session.versions if version != session.revision.version]
        also = f"; it also speaks {', '.join(show_line(version, 20) for version in others[:8])}" if others else ""
        return f"{session.evidence}{also}"
    if remembered is None or connection.config.protocol != "auto":
        return ""
    return f"{remembered.evidence}, on {remembered.day:%-d %b %Y}; asked again after a week"


def deprecated_features(connection: Connection) -> list[str]:
    """The features in use with this server that its revision deprecates."""
    session = connection.session
    if session is None or not session.revision.modern:
        return []
    used = [feature for feature in ("roots", "sampling") if feature in connection.declared]
    return [*used, *(["logging"] if "logging" in session.server.capabilities else [])]


_DETAILS: Final = {"listChanged": "list changes", "subscribe": "subscriptions", "requests": ""}
"""Parts of a capability; others by their own names."""

_CAPABILITIES: Final = 30
"""Capabilities that are named."""


def capability_words(capabilities: Mapping[str, Any]) -> str:
    """Such as ``tools (list changes) · prompts · tasks (list, cancel, tools/call)``."""
    words = [
        show_line(name, 60) + (f" ({', '.join(details)})" if (details := list(_details(value))) else "")
        for name, value in list(capabilities.items())[:_CAPABILITIES]
    ]
    more = len(capabilities) - len(words)
    return " · ".join([*words, *([f"and {more} more"] if more else [])]) or "none"


def _details(value: object, before: str = "") -> Iterator[str]:
    """List the parts of a capability; nested objects become paths such as tools/call."""
    if not isinstance(value, dict) or before.count("/") > 2:
        return
    for name, part in list(value.items())[:_CAPABILITIES]:
        if part is False:
            continue
        word = _DETAILS.get(name, show_line(name, 60))
        path = "/".join(filter(None, (before, word)))
        inner = list(_details(part, path))
        yield from inner or ([path] if path else [])


def _identity(info: Implementation) -> str:
    title = f"{show_line(info.title, 80)} " if info.title and info.title != info.name else ""
    site = f" {show_line(info.website_url, 120)}" if info.website_url else ""
    about = f"\n{show_line(info.description, 300)}" if info.description else ""
    return f"{title}{show_line(info.name, 80)} {show_line(info.version, 40)}{site}{about}".strip()


def _tools(connection: Connection) -> Iterator[Fact]:
    if connection.ready:
        yield fact("tools", str(len(connection.tools)))
    if keeps_tasks(connection):
        yield fact("tasks", "calls can run as tasks: T lists them")
    elif tasks_withheld(connection):
        yield fact("tasks", "off: capabilities.extensions in its entry")
    if connection.notice:
        yield fact("", show(connection.notice, limit=400), "$text-warning")
    yield from _left_out(connection.listings.tools)


def _skills(connection: Connection) -> Iterator[Fact]:
    """The number of skills that the server lists; nothing for one without them."""
    if not connection.ready or not connection.listings.declared(CatalogKind.SKILLS):
        return
    folders = " · their folders can be listed" if connection.client.skills.directory_read else ""
    yield fact("skills", f"{len(connection.listings.skills.items):,} listed{folders}")
    if notice := connection.notice_of(CatalogKind.SKILLS):
        yield fact("", show(notice, limit=400), "$text-warning")
    yield from _left_out(connection.listings.skills)


def _left_out(listing: Listing[Any]) -> Iterator[Fact]:
    rejected = listing.rejected
    for refused in rejected[:LEFT_OUT]:
        words = f"{show_line(refused.name, 60)}: {show_line(refused.reason, 200)}"
        yield fact("left out", words, "$text-warning")
    if len(rejected) > LEFT_OUT:
        yield fact("", f"and {len(rejected) - LEFT_OUT} more: see the logs")


def _kept_lists(connection: Connection, now: float) -> Iterator[Fact]:
    """When the lists of a modern server were fetched, and how long they stay fresh."""
    clock = datetime.now()
    kept = [
        f"{kind.value} of {freshness_text(listing.freshness, now, clock)}"
        for kind, listing in connection.listings
        if listing.freshness is not None and listing.freshness.received < listing.freshness.until < inf
    ]
    if kept:
        yield fact("cache", " · ".join(kept))


def _irregularities(connection: Connection, dropped: int) -> Iterator[Fact]:
    violations = connection.violations
    if violations.stray:
        count = f"{violations.stray} line{'' if violations.stray == 1 else 's'}"
        text = f"{count} that are not messages; the first: {show_line(violations.first_stray, 120)}"
        yield fact("stray stdout", text, "$text-warning")
    if violations.malformed:
        text = f"{violations.malformed} messages dropped; the last: {show_line(violations.last_malformed, 120)}"
        yield fact("malformed", text, "$text-warning")
    if dropped:
        yield fact("log lines", f"{dropped} dropped: too many a second", "$text-warning")


def _instructions(connection: Connection) -> Iterator[Fact]:
    if connection.session is None or not connection.session.server.instructions:
        return
    words = show(connection.session.server.instructions, limit=20_000)
    yield Fact("", Content(""), wide=True)
    yield Fact(f"Instructions of {connection.name} (its words, not ours):", Content(words), True, "▏ ")
