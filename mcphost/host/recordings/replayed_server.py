"""A server of a recording, for any number of clients: its exchanges, lists and notices by their places."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcphost.errors import NotDone, UnknownName
from mcphost.host.recordings.matching import ExchangeIndex, Matching, listed
from mcphost.host.recordings.recorded_tasks import with_tasks
from mcphost.host.recordings.recording import (
    LISTED,
    RecordedExchange,
    RecordedNotice,
    RecordedSession,
    Recording,
    walks_in,
)
from mcphost.json_values import as_dict, as_text, texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.json_paths import JsonPath
from mcphost.protocol.lifecycle.revisions import (
    NEEDED_CAPABILITY,
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    Revision,
    find_revision,
    has_extension,
)
from mcphost.serving.negotiation import ServerIntroduction
from mcphost.serving.served_request import Json
from mcphost.serving.subscriptions import URIS

if TYPE_CHECKING:
    from mcphost.serving.http_listener import HttpContent

PLAYED: Final = frozenset(
    {
        "tools/call",
        "resources/read",
        "prompts/get",
        "completion/complete",
        "skills/get",
        "resources/directory/read",
    }
)
"""Requests that the exchanges themselves answer."""

_SHOWN_SETTINGS: Final[Mapping[str, Json]] = {
    "skills/list": {},
    "skills/get": {},
    "resources/directory/read": {"directoryRead": True},
}
"""The settings of the extension for skills that an answer shows."""

_LISTEN: Final = "subscriptions/listen"
_SUBSCRIBE: Final = "resources/subscribe"
_MORE_COUNTS: Final = {"unanswered": "unanswered as recorded", "masked": "with masked values"}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """``speed`` divides the recorded times; 0 waits for nothing. ``loop``: the first exchange follows the last."""

    matching: Matching = "exact"
    ignored: tuple[JsonPath, ...] = ()
    speed: float = 0.0
    names_nearest: bool = True
    """False: what was not recorded is an error, even a tool call."""
    loop: bool = False


DEFAULTS: Final = ReplayOptions()


class _PlacedExchange(NamedTuple):
    exchange: RecordedExchange
    revision: Revision
    """The revision of its session."""


class ReplayedServer:
    """A server of a recording, for any number of clients; ``report`` takes sentences about what is not in it."""

    def __init__(
        self,
        sessions: Sequence[RecordedSession],
        options: ReplayOptions = DEFAULTS,
        report: Callable[[str], object] = lambda words: None,
    ) -> None:
        self.options, self.report = options, report
        self.name = sessions[0].server
        self.open_live: Callable[[], HttpContent] | None = None
        """Opens what answers one client's requests that were not recorded."""
        self.counts: Counter[str] = Counter()
        """By ``served``, ``repeated``, ``missed``, ``differing`` (answers of clients), ``unanswered``, ``masked``."""
        self.exchanges: list[_PlacedExchange] = []
        notices: list[RecordedNotice] = []
        self.tasks: set[int] = set()
        """The places of calls that were answered with a task."""
        for session, tasks in map(with_tasks, sessions):
            revision, start = _revision_of(session), len(self.exchanges)
            self.tasks |= {start + place for place in tasks}
            self.exchanges += [_PlacedExchange(exchange, revision) for exchange in session.exchanges]
            own = [*session.notices, *_notices_among(session.exchanges)]
            notices += [each._replace(after=each.after + start) for each in sorted(own, key=lambda each: each.at)]
        recorded = [placed.exchange for placed in self.exchanges]
        self.index = ExchangeIndex(
            [(exchange.method, exchange.params) for exchange in recorded],
            options.matching,
            options.ignored,
            {place for place, exchange in enumerate(recorded) if exchange.result is None and exchange.error is None},
        )
        self.walks = {method: walks_in(recorded, method) for method in LISTED}
        self.played = [place for place, exchange in enumerate(recorded) if exchange.method in PLAYED]
        self.subscribed = {uri: place for place, exchange in enumerate(recorded) for uri in _subscribed_in(exchange)}
        self.notices = self._anchored(notices)
        self._introduction: Mapping[str, Any] = next(
            (each.introduction for each in reversed(sessions) if each.introduction), {}
        )
        self._capabilities = self._offered()

    def introduction(self) -> ServerIntroduction:
        introduced = self._introduction
        identity = introduced.get("serverInfo")
        fresh = introduced.get("ttlMs")
        return ServerIntroduction(
            as_dict(identity) or {"name": "recording", "version": "0"},
            self._capabilities,
            as_text(introduced.get("instructions")),
            fresh if type(fresh) is int else 0,
        )

    def summary(self) -> str:
        """The counts in words."""
        counts = self.counts
        repeated = f" ({counts['repeated']} repeated)" if counts["repeated"] else ""
        more = "".join(f", {words} {counts[name]}" for name, words in _MORE_COUNTS.items() if counts[name])
        kinds = f"served {counts['served']}{repeated}, missed {counts['missed']}"
        return f"{self.name}: {kinds}, differing answers {counts['differing']}{more}"

    @property
    def faithful(self) -> bool:
        """True if the recording had an answer to everything."""
        return not (self.counts["missed"] or self.counts["differing"])

    def _offered(self) -> Json:
        """The capabilities as recorded, with those that the answers show, and tasks as the other era names them."""
        offered = dict(as_dict(self._introduction.get("capabilities")))
        if as_dict(offered.get("tasks")).get("requests"):
            offered["extensions"] = {**as_dict(offered.get("extensions")), TASKS_EXTENSION: {}}
        elif has_extension(TASKS_EXTENSION, offered):
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        for exchange, _ in self.exchanges:
            name, _, part = NEEDED_CAPABILITY.get(exchange.method, "").partition(".")
            if name and name != "tasks" and exchange.result is not None:
                offered[name] = as_dict(offered.get(name)) | ({part: True} if part else {})
            if exchange.method in _SHOWN_SETTINGS and exchange.result is not None:
                extensions = as_dict(offered.get("extensions"))
                settings = as_dict(extensions.get(SKILLS_EXTENSION)) | _SHOWN_SETTINGS[exchange.method]
                offered["extensions"] = {**extensions, SKILLS_EXTENSION: settings}
        return offered

    def _anchored(self, notices: Sequence[RecordedNotice]) -> dict[int, list[RecordedNotice]]:
        """The notices by the place of the exchange that they follow, which is one that every client repeats; or -1."""
        lists = {walk.place for walks in self.walks.values() for walk in walks}
        places = sorted({*self.played, *lists, *self.subscribed.values()})
        found: dict[int, list[RecordedNotice]] = {}
        for notice in notices:
            before = bisect_right(places, notice.after)
            found.setdefault(places[before - 1] if before else -1, []).append(notice)
        return found


def _revision_of(session: RecordedSession) -> Revision:
    return find_revision(session.revision) or (NEWEST_MODERN if session.modern else NEWEST_HANDSHAKE)


def _notices_among(exchanges: Sequence[RecordedExchange]) -> Iterator[RecordedNotice]:
    """The notifications during requests that are not in `PLAYED`, such as lists."""
    for place, exchange in enumerate(exchanges):
        for event in () if exchange.method in PLAYED else exchange.events:
            if event.kind != "question":
                yield RecordedNotice(event.method, event.params, exchange.at + event.after, place)


def _subscribed_in(exchange: RecordedExchange) -> Iterator[str]:
    """The resources that the client subscribed to by this request."""
    if exchange.method == _SUBSCRIBE:
        yield from texts_in([exchange.params.get("uri")])
    elif exchange.method == _LISTEN:
        yield from texts_in(as_dict(exchange.params.get("notifications")).get(URIS))


def server_in(recording: Recording, wanted: str | None = None) -> str:
    """The server that is replayed: the wanted one, or that with the most exchanges. Raises UnknownName or NotDone."""
    exchanges: Counter[str] = Counter()
    for session in recording.sessions:
        exchanges[session.server] += len(session.exchanges)
    if not exchanges.total():
        raise NotDone(f"{recording.name} holds no request to a server")
    if wanted is None:
        return exchanges.most_common(1)[0][0]
    if wanted not in exchanges:
        raise UnknownName(f"{recording.name} holds no server {wanted!a}; it holds {listed(exchanges)}")
    return wanted
