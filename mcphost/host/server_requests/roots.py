"""Answers ``roots/list`` with the folders that the configuration, the user or an earlier run shared with a server.

Folders are looked at again when a server asks, when something is shared, when a tool is called and when a front asks
(`RootsService.check`); that works on every file system and costs nothing meanwhile.

Specification: client/roots.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.config import Config, ResolvedRoot, entry_of
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, McphostError, NotDone
from mcphost.host.background import BackgroundTasks
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, RootsQuestion
from mcphost.host.events import CallStarted, RootsChanged
from mcphost.host.reporting import Reporting
from mcphost.host.server_requests.folders import FolderCheck, ResolveRoots, Root, check_folder, suggestions
from mcphost.host.server_requests.pending import PendingRequests, ServerRequest
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.json_values import as_list, dicts_in
from mcphost.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mcphost.host.connections.instances import AskRoots, Holder

STATE: Final = "roots"
"""The state file of what is remembered."""


@dataclass(frozen=True, slots=True)
class SharedRoot:
    """One folder for one server (None: for all). ``path`` is where it really was when it was shared.

    ``identity`` is what runs the server, as shown then: another program under its name gets nothing.
    """

    server: str | None
    path: Path
    name: str | None = None
    identity: str = ""
    remembered: bool = False

    @property
    def key(self) -> tuple[str | None, Path]:
        """No two shares have the same."""
        return self.server, self.path

    def reaches(self, server: str, identity: str) -> bool:
        """True if it is shared with this server, run by this program."""
        return self.server is None or (self.server, self.identity) == (entry_of(server), identity)


class SharedRoots:
    """All that was shared on screen, by a flag or in earlier runs; in the order it was shared."""

    def __init__(self, shares: Iterable[SharedRoot] = ()) -> None:
        self._shares = {share.key: share for share in shares}

    def add(self, share: SharedRoot) -> None:
        """Share a folder; one that was remembered stays so."""
        self._shares[share.key] = share

    def remove(self, server: str | None, path: Path) -> SharedRoot | None:
        """Share it no more; what was shared."""
        return self._shares.pop((server, path), None)

    def for_all(self) -> list[SharedRoot]:
        """The folders shared with all servers."""
        return [share for share in self._shares.values() if share.server is None]

    def reaching(self, server: str, identity: str) -> list[SharedRoot]:
        """The folders shared with this server, its own first."""
        fitting = [share for share in self._shares.values() if share.reaches(server, identity)]
        return sorted(fitting, key=lambda share: share.server is None)


def from_toml(data: Mapping[str, Any]) -> list[SharedRoot]:
    """The remembered folders; an invalid entry shares nothing."""
    return [share for entry in as_list(data.get("folders")) if (share := _read(entry)) is not None]


def with_share(data: Mapping[str, Any], share: SharedRoot) -> dict[str, Any]:
    """The state with one more."""
    others = [each for each in from_toml(data) if each.key != share.key]
    return _state([*others, share], declined_in(data))


def without_share(data: Mapping[str, Any], share: SharedRoot) -> dict[str, Any]:
    """The state with one less."""
    return _state([each for each in from_toml(data) if each.key != share.key], declined_in(data))


def declined_in(data: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The servers that the user shares nothing with, each with what runs it; invalid entries are ignored."""
    pairs = [(each.get("server"), each.get("identity")) for each in dicts_in(data.get("declined"))]
    return {(server, identity) for server, identity in pairs if isinstance(server, str) and isinstance(identity, str)}


def with_declined(data: Mapping[str, Any], server: str, identity: str) -> dict[str, Any]:
    """The state with a server that is not asked about again."""
    return _state(from_toml(data), declined_in(data) | {(server, identity)})


def without_declined(data: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The state with a server that is asked about again."""
    return _state(from_toml(data), {each for each in declined_in(data) if each[0] != server})


def _state(shares: Iterable[SharedRoot], declined: Iterable[tuple[str, str]]) -> dict[str, Any]:
    state: dict[str, Any] = {"folders": [_table(each) for each in shares]}
    if tables := [{"server": server, "identity": identity} for server, identity in sorted(declined)]:
        state["declined"] = tables
    return state


def _table(share: SharedRoot) -> dict[str, Any]:
    named = {"server": share.server, "name": share.name, "identity": share.identity or None}
    return {"path": str(share.path), **{key: value for key, value in named.items() if value is not None}}


def _read(entry: object) -> SharedRoot | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return None
    path, server, name = Path(entry["path"]), entry.get("server"), entry.get("name")
    identity = entry.get("identity", "")
    if not path.is_absolute() or not all(isinstance(each, str | None) for each in (server, name)):
        return None
    if not isinstance(identity, str) or (server is not None and not identity):
        return None
    return SharedRoot(server, path, name, identity, remembered=True)


FRESH: Final = 1.0
"""Seconds for which a check of the folders is reused: a server may ask ten thousand times."""

MOST_FOLDERS: Final = 200
"""Folders of an agent that a server gets: no workspace has more."""

URI_CHARACTERS: Final = 4_096
"""Characters of the address of an agent's folder: the longest path of most systems."""

TRIES: Final = 5
"""Times that the user is asked again after choosing folders that cannot be shared."""


class RootSource(Enum):
    """The source of a shared folder."""

    CONFIG = "configuration"
    RUN = "until mcphost exits"
    REMEMBERED = "remembered"


@dataclass(frozen=True, slots=True)
class OfferedRoot:
    """A folder shared with ``server`` (None: with all). ``problem``: why the server does not get it now."""

    path: Path
    root: Root
    server: str | None
    source: RootSource
    problem: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class SentRoots:
    """The last answer to a server, and its time in seconds of the monotonic clock."""

    at: float
    roots: tuple[Root, ...]


class RootsService:
    """The folders of all servers. ``asks``: the user can choose folders when a server asks for the first time.

    ``resolve`` finds the folders that a server's entry grants, and ``holder_of`` the agent's session for which it runs.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        resolve: ResolveRoots,
        store: StateStore | None,
        pending: PendingRequests,
        servers: Servers,
        calls: CallRegistry,
        reporting: Reporting,
        background: BackgroundTasks,
        holder_of: Callable[[str], Holder | None] = lambda server: None,
        *,
        asks: bool,
    ) -> None:
        self._config, self._resolve, self._store, self._asks = config, resolve, store, asks
        self._holder_of = holder_of
        self._pending, self._servers, self._calls = pending, servers, calls
        self._audit, self._logs, self._bus = reporting.audit, reporting.logs, reporting.bus
        self._background = background
        self._shares = SharedRoots()
        self._offered: dict[str, tuple[OfferedRoot, ...]] = {}
        self._looked: dict[str, float] = {}
        """The time of the last check of a server's folders, in seconds of the monotonic clock."""
        self._looking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._pinned: dict[tuple[str, Path], Path] = {}
        self._withheld: set[tuple[str, Path]] = set()
        self._asking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._declined: set[str] = set()
        """Servers that got an empty list in this run and are not asked about again."""
        self._declined_for_good: set[tuple[str, str]] = set()
        """Those that the user shares nothing with, each with what ran it then."""
        self._sent: dict[str, SentRoots] = {}
        self._bus.observe(self._call_begins, CallStarted)

    async def load(self, more: Iterable[Path] = ()) -> None:
        """Read what is remembered, and share ``more`` with all until mcphost exits. Raises ConfigError, NotDone."""
        if self._store is not None:
            state = await asyncio.to_thread(self._store.read, STATE)
            self._shares, self._declined_for_good = SharedRoots(from_toml(state)), declined_in(state)
        for path in more:
            await self.share(None, path)

    def check_readable(self, request: ServerRequest) -> None:
        """Raise InputRefused if the request cannot be read; it has no params of its own."""

    async def answer(self, request: ServerRequest) -> Mapping[str, Any]:
        """Return the result to send. Raises InputRefused; cancelled when the server takes the request back."""
        server, holder = request.server, self._holder_of(request.server)
        theirs = [] if holder is None or holder.roots is None else await _folders_of(holder.roots)
        if holder is not None and holder.roots is not None and not holder.adds_roots:
            return {"roots": theirs}
        async with self._asking[entry_of(server)]:  # one question for all that ask meanwhile
            await self._look(server)
            if not self._offered[server] and not self.declined(server):
                await self._ask(request)
        sent = self._sent[server] = SentRoots(time.monotonic(), self.visible(server))
        self._bus.publish(RootsChanged(server))
        own = [root.as_object() for root in sent.roots]
        return {"roots": theirs + [root for root in own if root not in theirs]}

    def offered(self, server: str | None) -> tuple[OfferedRoot, ...]:
        """The folders shared with this server, as last checked; None: those shared with all."""
        if server is not None:
            return self._offered.get(server, ())
        return tuple(_folder(share, FolderCheck(share.path, share.path)) for share in self._shares.for_all())

    def visible(self, server: str) -> tuple[Root, ...]:
        """The folders that the server gets if it asks now."""
        return tuple(folder.root for folder in self.offered(server) if not folder.problem)

    def declined(self, server: str) -> bool:
        """True if the user declined to share anything with it."""
        entry, settings = entry_of(server), self._config().servers.get(server)
        now = (entry, "" if settings is None else settings.identity)
        return entry in self._declined or now in self._declined_for_good

    async def ask_again(self, server: str) -> bool:
        """Forget that the user shares nothing with it; return whether that was remembered. Raises NotDone."""
        self._declined.discard(server)
        known = {each for each in self._declined_for_good if each[0] == server}
        if known:
            self._declined_for_good -= known
            await self._save(lambda data: without_declined(data, server))
        return bool(known)

    def sent(self, server: str) -> SentRoots | None:
        """The last answer to this server and its time; None if it never asked in this run."""
        return self._sent.get(server)

    def declared(self, server: str) -> bool:
        settings = self._config().servers[server]
        answered = self._asks or self.has_agents(server) or self.grants(server)
        return settings.capabilities.roots and answered

    def grants(self, server: str) -> bool:
        """True if any folder is granted to this server, whether it exists or not."""
        config = self._config()
        if server not in config.servers:
            return False
        return bool(config.servers[server].roots or self._shares.reaching(server, config.servers[server].identity))

    async def share(
        self, server: str | None, path: Path, *, remember: bool = False, name: str | None = None
    ) -> OfferedRoot:
        """Let a server (None: all) know of a folder, and tell it that its list changed.

        Raises UnknownName, or NotDone where the folder cannot be shared.
        """
        if server is not None:
            _, server = self._servers[server], entry_of(server)
        seen = await asyncio.to_thread(check_folder, path)
        if seen.problem:
            raise NotDone(f"{path} {seen.problem}")
        share = SharedRoot(server, seen.path, name, self._identity(server), remember)
        await self._grant(share)
        await self.check(changed=True)
        return _folder(share, seen)

    def has_agents(self, server: str) -> bool:
        """True if the server runs for an agent, and gets that agent's folders."""
        holder = self._holder_of(server)
        return holder is not None and holder.roots is not None

    async def unshare(self, server: str | None, path: Path) -> None:
        """Take a folder back; one of the configuration until mcphost exits.

        Raises UnknownName, or NotDone where it is not shared.
        """
        if server is not None:
            _, server = self._servers[server], entry_of(server)
        share = self._shares.remove(server, path)
        if share is not None:
            if share.remembered:
                await self._save(lambda data: without_share(data, share))
            self._note("unshare", share)
        elif server is not None and any(path == each.path for each in self.offered(server)):
            self._withheld.add((server, path))
            self._note("unshare", SharedRoot(server, path))
        else:
            raise NotDone(f"{path} is not shared with {server or 'all servers'}")
        await self.check(changed=True)

    async def check(self, *, changed: bool = False) -> None:
        """Look at every folder again, and tell the servers whose list is another now.

        ``changed``: something was shared or taken back.
        """
        before = dict(self._offered)
        for server in list(self._config().servers):
            if changed:
                self._looked.pop(server, None)
            await self._check(server, changed=changed)
        if changed or self._offered != before:
            self._bus.publish(RootsChanged(None))

    async def check_one(self, server: str) -> None:
        before = self.offered(server)
        if before:
            await self._check(server)
        if self.offered(server) != before:
            self._bus.publish(RootsChanged(server))

    def agent_changed(self, server: str) -> None:
        """The agent for which this server runs has other folders now."""
        if self.has_agents(server):
            self._tell_changed(server)

    def forget(self, server: str) -> None:
        """The server is gone, or was an instance that has ended."""
        for known in (self._offered, self._looked, self._looking, self._sent):
            known.pop(server, None)

    def reconfigured(self, servers: Iterable[str]) -> None:
        """The configuration of these servers changed: check their folders, and notify those whose list changed."""
        for server in servers:
            self._looked.pop(server, None)
            self._declined.discard(server)
            for key in [key for key in self._pinned if key[0] == server]:
                del self._pinned[key]
        self._background.start_if_open(self.check(), "check roots")

    def _call_begins(self, event: CallStarted) -> None:
        """A call begins with folders that are there."""
        server = self._calls.find(event.call).request.server
        if server in self._sent:
            self._background.start_if_open(self.check_one(server), f"check roots of {server}")

    def _tell_changed(self, server: str) -> None:
        connection = self._servers.get(server)
        if connection is not None and connection.ready:
            self._background.start_if_open(_quietly(connection.client.notify_roots_changed), f"tell {server} of roots")

    # Asking.

    async def _ask(self, request: ServerRequest) -> None:
        offered = await asyncio.to_thread(suggestions, Path.cwd())
        problem = ""
        for _ in range(TRIES):
            question = RootsQuestion(entry_of(request.server), offered, request.number, request.tool, problem)
            answer = await self._pending.ask("roots", question, purpose=request.purpose)
            if not answer.allow:
                if not answer.cancelled and not self._pending.muted(request.server):
                    await self._decline(entry_of(request.server), remember=answer.by == "user")
                return
            problem = await self._take(request.server, answer)
            if not problem or answer.by != "user":
                return

    async def _decline(self, server: str, *, remember: bool) -> None:
        """Ask no more about this server: in this run, or as long as the same program or address is behind its name."""
        self._declined.add(server)
        if remember:
            identity = self._identity(server)
            self._declined_for_good.add((server, identity))
            try:
                await self._save(lambda data: with_declined(data, server, identity))
            except NotDone as error:
                self._logs.warn(server, str(error))

    async def _take(self, server: str, answer: Answer) -> str:
        """Share what was chosen, all of it or nothing; why it cannot be shared."""
        chosen = answer.content if isinstance(answer.content, Iterable) else ()
        looks = [await asyncio.to_thread(check_folder, Path(path)) for path in chosen]
        if wrong := next((seen for seen in looks if seen.problem), None):
            problem = f"{wrong.given} {wrong.problem}"
            self._logs.warn(server, f"nothing was shared: {problem}")
            return problem
        remember = answer.lifetime is Lifetime.ALWAYS
        for seen in looks:
            await self._grant(SharedRoot(entry_of(server), seen.path, None, self._identity(server), remember))
        self._looked.pop(server, None)
        await self._look(server)
        if not self._offered[server]:
            self._declined.add(entry_of(server))
        return ""

    # Looking.

    async def _check(self, server: str, *, changed: bool = False) -> None:
        """Tell it where its list is another; one that was never looked at is no other."""
        looked = server in self._offered
        before = await self._look(server)
        if (looked or changed) and self.visible(server) != before:
            self._tell_changed(server)
        if self.visible(server):
            self._pending.shared(server)

    async def _look(self, server: str) -> tuple[Root, ...]:
        """Look at its folders, unless that was done in the last `FRESH` seconds; return what was visible before."""
        async with self._looking[server]:  # a slow check must not replace the result of a later one
            visible, now = self.visible(server), time.monotonic()
            if now - self._looked.get(server, float("-inf")) < FRESH:
                return visible
            self._looked[server] = now  # before the check: code that removes it meanwhile wants another one
            before = {folder.path: folder.problem for folder in self.offered(server)}
            try:
                folders = self._offered[server] = await asyncio.to_thread(self._found, server)
            except BaseException:
                self._looked.pop(server, None)
                raise
        for folder in folders:
            if folder.problem and before.get(folder.path, "") != folder.problem:
                self._logs.warn(server, f"{folder.path} is not shared with it now: it {folder.problem}")
        return visible

    def _found(self, server: str) -> tuple[OfferedRoot, ...]:
        """The folders of a server as they are on the disk now, no two the same. In a thread."""
        config = self._config()
        if server not in config.servers:
            return ()
        found: dict[Path, OfferedRoot] = {}
        for folder in (*self._configured(config, server), *self._shared(config, server)):
            if (entry_of(server), folder.path) not in self._withheld:
                found.setdefault(folder.path, folder)
        return tuple(found.values())

    def _configured(self, config: Config, server: str) -> list[OfferedRoot]:
        if not config.servers[server].roots:
            return []
        try:
            resolved = self._resolve(config, server)
        except ConfigError as error:
            self._logs.warn(server, f"its roots cannot be shared: {error}")
            return []
        return [self._as_configured(server, root) for root in resolved]

    def _as_configured(self, server: str, root: ResolvedRoot) -> OfferedRoot:
        seen = check_folder(root.path)
        entry = entry_of(server)
        pinned = seen.path if seen.problem else self._pinned.setdefault((entry, root.path), seen.path)
        share = SharedRoot(entry, pinned, root.name)
        return _folder(share, seen, RootSource.CONFIG)

    def _shared(self, config: Config, server: str) -> list[OfferedRoot]:
        reaching = self._shares.reaching(server, config.servers[server].identity)
        return [_folder(share, check_folder(share.path)) for share in reaching]

    # Keeping.

    def _identity(self, server: str | None) -> str:
        return "" if server is None else self._config().servers[server].identity

    async def _grant(self, share: SharedRoot) -> None:
        """Share it, also where it was taken back before. Raises NotDone where it cannot be saved."""
        await self._keep(share)
        self._shares.add(share)
        if share.server is not None:
            await self.ask_again(share.server)
        for server in self._config().servers if share.server is None else [share.server]:
            self._withheld.discard((server, share.path))
        self._note("share", share)

    async def _keep(self, share: SharedRoot) -> None:
        if share.remembered:
            if "\udc80" <= max(str(share.path)) <= "\udcff":
                raise NotDone(f"{share.path!a} can be shared until mcphost exits only: its name is not text")
            await self._save(lambda data: with_share(data, share))

    async def _save(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        if self._store is None:
            return
        try:
            await asyncio.to_thread(self._store.update, STATE, change)
        except ConfigError as error:
            raise NotDone(f"what you share could not be saved: {error}") from None

    def _note(self, event: str, share: SharedRoot) -> None:
        lasting = "always" if share.remembered else "session"
        record = {"event": event, "server": share.server, "path": str(share.path), "lifetime": lasting, "by": "user"}
        self._audit.note(record)


def _folder(share: SharedRoot, seen: FolderCheck, source: RootSource | None = None) -> OfferedRoot:
    problem = seen.problem
    if not problem and seen.path != share.path:  # what was agreed to is one place on the disk
        problem = f"now leads to {seen.path}; share that if you mean it"
    kept = RootSource.REMEMBERED if share.remembered else RootSource.RUN
    return OfferedRoot(share.path, Root.of(share.path, share.name), share.server, source or kept, problem, seen.warning)


async def _folders_of(ask: AskRoots) -> list[dict[str, str]]:
    """The folders of an agent, as far as they are folders. Raises McphostError."""
    found = []
    for folder in dicts_in(list(await ask())[:MOST_FOLDERS]):
        uri, name = folder.get("uri"), folder.get("name")
        if isinstance(uri, str) and uri.startswith("file://") and len(uri) <= URI_CHARACTERS:
            found.append({"uri": uri, **({"name": name[:URI_CHARACTERS]} if isinstance(name, str) else {})})
    return found


async def _quietly(tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with suppress(McphostError):  # the connection has ended
        await tell()
