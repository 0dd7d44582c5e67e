"""The server's tools as they were listed last: by the agent in passing, or by mcphost for a call that waits."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_text, canonical, dicts_in
from mcphost.protocol.limits import LIST_ITEMS, LIST_PAGES, LIST_SECONDS
from mcphost.serving.gate_lines import Message

Definition = Mapping[str, Any]
Definitions = dict[str, Definition]

OPEN_LISTINGS: Final = 8
"""Listings of the agent whose next page has not come: it runs few at once, and may end none."""

RELISTINGS: Final = 3
"""Listings in a row that the server calls out of date before they end; then the last one counts."""


class KnownTool(NamedTuple):
    """A tool by which a call is decided; without a definition, the server has no such tool, or does not say."""

    definition: Definition | None = None
    text: str = ""
    """The definition as text, equal exactly if the definitions are."""


class ListPage(NamedTuple):
    """A request for a page of the list, as it was sent."""

    cursor: str | None
    epoch: int


class _Listing:
    """A listing by mcphost."""

    def __init__(self, meta: Mapping[str, Any] | None, epoch: int, now: float) -> None:
        self.meta, self.epoch, self.ends_at = meta, epoch, now + LIST_SECONDS
        self.found: Definitions = {}
        self.cursors: set[str] = set()

    def params(self, cursor: str | None) -> dict[str, Any]:
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        return params if self.meta is None else {**params, "_meta": self.meta}


class ToolListing:
    """The newest definitions, and if they still count: a change that the server announces makes them stale."""

    def __init__(self) -> None:
        self.epoch = 0
        """Grows with each change that the server announces."""
        self._fresh_epoch = 0
        self._complete = False
        self._definitions: Definitions = {}
        self._texts: dict[str, str] = {}
        """Those definitions as texts, as far as they were needed."""
        self._agents: dict[str, Definitions] = {}
        """Unfinished listings of the agent, by the cursor of the next page."""
        self._own: _Listing | None = None
        self._outdated = 0
        self._listed_at = -inf

    def known(self, name: str) -> KnownTool | None:
        """The tool by which to decide; None: list first."""
        if self._fresh_epoch != self.epoch:
            return None
        definition = self._definitions.get(name)
        if definition is None:
            return KnownTool() if self._complete else None
        if name not in self._texts:
            self._texts[name] = canonical(definition)
        return KnownTool(definition, self._texts[name])

    def is_older(self, seconds: float, now: float) -> bool:
        """True if the last complete listing is older than so many seconds."""
        return now - self._listed_at > seconds

    def change(self) -> None:
        """Take note that the definitions may have changed."""
        self.epoch += 1
        self._agents.clear()

    def page(self, params: Mapping[str, Any]) -> ListPage:
        """A page that the agent asks for."""
        cursor = params.get("cursor")
        return ListPage(cursor if isinstance(cursor, str) else None, self.epoch)

    def take_page(self, page: ListPage, result: Mapping[str, Any], now: float) -> None:
        """Take the answer to a page that the agent asked for."""
        if page.epoch != self.epoch:
            return
        found = _tools_of(result)
        self._definitions |= found
        self._texts.clear()
        so_far = {} if page.cursor is None else self._agents.pop(page.cursor, None)
        if so_far is None or len(so_far) + len(found) > LIST_ITEMS or len(self._definitions) > LIST_ITEMS:
            return
        found, following = found | so_far, result.get("nextCursor")
        if following is None:
            self._replace(found, now)
        elif isinstance(following, str):
            self._agents[following] = found
            while len(self._agents) > OPEN_LISTINGS:
                del self._agents[next(iter(self._agents))]

    @property
    def ends_at(self) -> float | None:
        """The time at which the listing by mcphost is given up; None: none is open."""
        return None if self._own is None else self._own.ends_at

    def begin(self, meta: Mapping[str, Any] | None, now: float) -> dict[str, Any]:
        """Begin a listing by mcphost: the params of its first request, with this ``_meta``."""
        self._own = _Listing(meta, self.epoch, now)
        return self._own.params(None)

    def go_on(self, answer: Message, now: float) -> dict[str, Any] | bool:
        """Take the answer to a request: the params of the next one, or if the listing succeeded."""
        own, result = self._own, answer.get("result")
        if own is None or type(result) is not dict or type(result.get("tools")) is not list:
            return self.give_up()
        found, cursor = _tools_of(result), result.get("nextCursor")
        own.found = found | own.found
        if cursor is not None:
            if not isinstance(cursor, str) or cursor in own.cursors or len(own.cursors) >= LIST_PAGES - 1:
                return self.give_up()
            if len(own.found) > LIST_ITEMS:
                return self.give_up()
            own.cursors.add(cursor)
            return own.params(cursor)
        self._own = None
        self._outdated = 0 if own.epoch == self.epoch else self._outdated + 1
        if own.epoch == self.epoch or self._outdated >= RELISTINGS:
            self._outdated = 0
            self._replace(own.found, now)
        return True

    def give_up(self) -> bool:
        """End the listing by mcphost; False: it did not succeed."""
        self._own = None
        return False

    def _replace(self, definitions: Definitions, now: float) -> None:
        self._definitions, self._complete, self._fresh_epoch = definitions, True, self.epoch
        self._listed_at = now
        self._texts.clear()


def _tools_of(result: Mapping[str, Any]) -> Definitions:
    """The definitions by their names; of two with one name the first."""
    return {as_text(tool.get("name")): tool for tool in reversed(dicts_in(result.get("tools")))}
