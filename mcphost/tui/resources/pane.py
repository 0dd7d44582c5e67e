"""The pane for resources: the list of resources and templates, a template's form, and the contents."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from math import inf, isnan
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.errors import Declined, McphostError
from mcphost.host.catalog import CatalogResource, CatalogTemplate
from mcphost.host.connections.subscriptions import Subscription, SubscriptionState
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line, size_text, unindented
from mcphost.protocol.models.prompts import CompletionRef, TemplateRef
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.tui.catalog.form_pane import CatalogFormPane
from mcphost.tui.catalog.list import CatalogList
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.results.reading_pane import PaneReading, ReadingView, kept_words

Described = Resource | ResourceTemplate


class ResourceOrder(Enum):
    """The order of the list; each value is part of its title."""

    LISTED = ""
    NEWEST = "newest first"
    IMPORTANT = "by priority"

    @property
    def next(self) -> ResourceOrder:
        """The next order, in a circle."""
        orders = list(ResourceOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


def audience(described: Described) -> str:
    """The audience, if the server names a single one."""
    named = set((described.annotations and described.annotations.audience) or ())
    return "for you" if named == {"user"} else "for models" if named == {"assistant"} else ""


def rank(described: Described, order: ResourceOrder) -> float:
    """The sort key, highest first; resources without a value come last."""
    hints = described.annotations
    if hints is None:
        return -inf
    if order is ResourceOrder.NEWEST:
        return -inf if hints.modified is None else _seconds(hints.modified)
    return -inf if hints.priority is None or isnan(hints.priority) else hints.priority


def _seconds(moment: datetime) -> float:
    return (moment - datetime.min.replace(tzinfo=UTC)).total_seconds()  # works for any year, unlike timestamp()


def ranked_by(described: Described, order: ResourceOrder) -> str:
    """The value it is sorted by, in ten cells."""
    hints = described.annotations
    if hints is None:
        return ""
    if order is ResourceOrder.NEWEST:
        return f"{hints.modified:%Y-%m-%d}" if hints.modified else ""
    return "" if hints.priority is None else f"{hints.priority:.2g}"


Key = tuple[str, str]
"""A server and a URI."""

Watched = Mapping[Key, Subscription]

WATCH_MARKS: Final = {SubscriptionState.WATCHING: "◉", SubscriptionState.WAITING: "◎", SubscriptionState.REFUSED: "✖"}
CHANGED: Final = "✱"
LEGEND: Final = "◉ watched, ✱ changed since you last saw it, ◎ waiting for the server, ✖ refused"


class WatchMarks:
    """Computes the marks, and remembers what was seen between updates."""

    def __init__(self) -> None:
        self.watched: Watched = {}
        self._seen_updates: dict[Key, int] = {}
        self._shown: dict[Key, tuple[ReadResourceResult | None, float | None]] = {}

    def show(self, watched: Watched, visible: Key | None) -> None:
        """Update the watched resources; ``visible`` is on screen."""
        counts = {key: watch.updates for key, watch in watched.items()}
        self._seen_updates = {
            key: count if key == visible else self._seen_updates.get(key, 0) for key, count in counts.items()
        }
        self.watched = watched
        for key in self._shown.keys() - watched.keys():
            del self._shown[key]

    def changed(self, key: Key) -> bool:
        """True if the resource has changed since it was last on screen."""
        return key in self.watched and self.watched[key].updates > self._seen_updates[key]

    def mark(self, key: Key) -> str:
        """One character; empty for a resource that is not watched."""
        if key not in self.watched:
            return ""
        return CHANGED if self.changed(key) else WATCH_MARKS[self.watched[key].state]

    def unshown_result(self, key: Key) -> ReadResourceResult | None:
        """Return the content that the subscription read last, if it is not shown yet."""
        watch = self.watched.get(key)
        return None if watch is None or watch.result is self._shown.get(key, (None,))[0] else watch.result

    def mark_shown(self, key: Key, at: float | None = None) -> None:
        """Record that this content is shown since ``at``; None if what is shown is at least as new."""
        if key in self.watched:
            self._shown[key] = self.watched[key].result, at

    def updated(self, key: Key) -> float | None:
        """Return the time since which the content of the subscription is shown."""
        return self._shown.get(key, (None, None))[1]


AnyResource = CatalogResource | CatalogTemplate

FOLDER = "/"

HINT = (
    "The contents of a resource appear here: text, JSON, code, pictures or bytes.\n\n"
    "Choose a resource and press enter. space watches it: it is read again whenever it changes.\n"
    "{} marks a template: enter opens a form for its variables, with suggestions if the server has them."
)


class ResourceList(CatalogList[AnyResource]):
    """Resources first, then templates."""

    TITLE = "Resources"
    EMPTY = (
        "No resources: no ready server offers any.\n"
        "A resource is something to read, such as a file or a table. c opens the server's card."
    )
    HELP = (
        "The resources on offer. A filter looks at names, URIs and types. Opening reads a resource, or shows the form\n"
        f"of a template {{…}}. {LEGEND}. / is a folder."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "o",
            "sort",
            "order",
            id="resources.sort",
            show=False,
            tooltip="Sort by last change, by priority, or as listed",
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.marks = WatchMarks()
        """The marks of watched resources."""
        self.order = ResourceOrder.LISTED
        self._addressed = False

    def show_watches(self, watched: Watched, visible: tuple[str, str] | None) -> None:
        """Mark the watched resources; ``visible`` is on screen."""
        self.marks.show(watched, visible)
        self.rows.refresh()

    def row(self, entry: AnyResource, width: int) -> Content:
        described, roomy = _described(entry), width >= 44
        uri = entry.key[1]
        label = show_line(described.label, 80)
        if self.search.finds(described.name) and not self.search.finds(f"{label} {uri}"):
            label = f"{label} · {show_line(described.name, 80)}"
        cells = self.server_cells(entry, width)
        cells.append(Cell(self._mark(entry), "$text-accent", 2, 2))
        cells.append(Cell(self.search.mark(label), "", 10, min(30, width // 3) if roomy else None))
        if roomy:
            shown = "" if described.label == uri else show_line(uri, 160)
            known = uri.endswith(described.label)  # then its end says nothing that the label does not
            cells.append(Cell(self.search.mark(shown), "$foreground-muted", keep="start" if known else "end"))
        if self._addressed and width >= 56:
            cells.append(Cell(audience(described), "$foreground-muted", 10, 10))
        if width >= 84:
            cells.append(Cell(_type(described), "$foreground-muted", 10, 17))
        if self.order is not ResourceOrder.LISTED:
            cells.append(Cell(ranked_by(described, self.order), "$text-accent", 10, 10, "right"))
        if self.marks.changed(entry.key):
            return columns(width, [*cells, Cell("changed", "bold $text-warning", 7, 7, "right")])
        size = _size(described)
        taken = 7 if roomy else len(size)
        return columns(width, [*cells, Cell(size, "$foreground-muted", taken, taken, "right")])

    def in_order(self, entries: Sequence[AnyResource]) -> Sequence[AnyResource]:
        """Sort by the current order; entries without the value come last, as listed."""
        self.sorted_by = self.order.value
        self._addressed = any(audience(_described(each)) for each in entries)
        if self.order is ResourceOrder.LISTED:
            return entries
        return sorted(entries, key=lambda each: rank(_described(each), self.order), reverse=True)

    def action_sort(self) -> None:
        self.order = self.order.next
        self.list_matches()

    def defined(self, entry: AnyResource) -> Resource | ResourceTemplate:
        return _described(entry)

    def search_text(self, entry: AnyResource) -> SearchText:
        described = _described(entry)
        more = (_type(described), described.description, audience(described))
        return SearchText(
            described.name, described.label, entry.key[1], entry.server, more="\n".join(filter(None, more))
        )

    def _mark(self, entry: AnyResource) -> str:
        if isinstance(entry, CatalogTemplate):
            return "{}"
        return self.marks.mark(entry.key) or (FOLDER if entry.resource.is_folder else "")


class ResourcesPane(CatalogFormPane[AnyResource]):
    HELP = "The servers' resources and their contents."
    KIND = "resource"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "watch", "watch", id="resources.watch", tooltip="Read it again whenever it changes"),
        Binding("space", "unwatch", "unwatch", id="resources.unwatch", tooltip="Stop watching it"),
        Binding(
            "r,ctrl+r", "reread", "read again", id="resources.reread", tooltip="Read it from the server, not the cache"
        ),
        Binding("y", "copy", "copy URI", id="resources.copy", tooltip="Copy the URI"),
    ]

    def __init__(self, host: Host, *, single: bool = False) -> None:
        self.resources = ResourceList()
        super().__init__(host, self.resources, ReadingView("Contents", HINT), "read", single=single)

    def show_resources(
        self,
        resources: Sequence[CatalogResource],
        templates: Sequence[CatalogTemplate],
        watched: Watched,
        server: str | None,
    ) -> None:
        """List these, and watched resources that are not listed by their server."""
        listed = {each.key for each in resources}
        more = [_unlisted(*key) for key in watched if key not in listed and server in (None, key[0])]
        self.resources.show_watches(watched, self.reading_in_view)
        self.resources.explain(self.host.servers, server)
        self.resources.show_entries((*resources, *more, *templates), server)
        self._follow_watch()
        self.refresh_bindings()

    def open_resource(self, server: str, uri: str, size: int | None = None) -> None:
        """Read this resource, and go there."""
        self.close_form()
        self._read(server, uri, size)

    async def choose(self, entry: AnyResource) -> None:
        """Read a resource, or ask for the variables of a template."""
        if isinstance(entry, CatalogTemplate):
            await self._open_form(entry)
        else:
            self.open_resource(*entry.key)

    def submit(self, entry: AnyResource, values: Mapping[str, str]) -> None:
        """Read the URI that the template became."""
        if isinstance(entry, CatalogTemplate):
            self._read(entry.server, entry.pattern.expand_texts(values))

    def completion_ref(self, entry: AnyResource) -> CompletionRef:
        return TemplateRef(entry.key[1])

    def preview(self, entry: AnyResource, values: Mapping[str, str]) -> Content:
        """The URI that the template becomes."""
        if not isinstance(entry, CatalogTemplate):
            return Content("")
        return Content.assemble(("reads  ", "$foreground-muted"), show_line(entry.pattern.expand_texts(values), 2_000))

    def notes(self) -> tuple[str, ...]:
        """Say if the content is cached, if it is watched, and when it changed."""
        watch, reading = self._watch, self.view.reading
        kept = reading.kept if reading is not None else None
        cached = kept_words(kept, time.monotonic(), datetime.now()) if kept is not None else ""
        if watch is None or reading is None:
            return (cached,) if cached else ()
        state = f"{WATCH_MARKS[watch.state]} {watch.state.value}"
        at = None if cached else self.resources.marks.updated(reading.key)
        updated = f"updated {clock_text(at)}" if at else ""
        problem = f"✖ {show_line(str(watch.error), 120)}" if watch.error else ""
        return tuple(note for note in (state, cached, updated, problem) if note)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        target = self._target
        match action:
            case "copy":
                return target is not None
            case "reread":
                return self._step == "reading" and self.view.reading is not None
            case "watch" | "unwatch":
                return target is not None and (target in self.resources.marks.watched) == (action == "unwatch")
        return super().check_action(action, parameters)

    def action_watch(self) -> None:
        if self._target is not None:
            self.app.run_worker(self._subscribe(*self._target, on=True), group="watch")

    def action_unwatch(self) -> None:
        if self._target is not None:
            self.app.run_worker(self._subscribe(*self._target, on=False), group="watch")

    def action_reread(self) -> None:
        reading = self.view.reading
        if reading is not None:
            self._read(*reading.key, again=True)

    def action_copy(self) -> None:
        target = self._target
        if target is not None:
            self.app.copy_to_clipboard(target[1])

    @property
    def _target(self) -> tuple[str, str] | None:
        """The server and URI that keys act on."""
        if self._step == "reading":
            return self.view.reading.key if self.view.reading else None
        item = self.resources.item
        return item.key if self._step == "list" and isinstance(item, CatalogResource) else None

    @property
    def _watch(self) -> Subscription | None:
        reading = self.view.reading
        return self.resources.marks.watched.get(reading.key) if reading else None

    def _read(self, server: str, uri: str, size: int | None = None, *, again: bool = False) -> None:
        self.resources.marks.mark_shown((server, uri))
        self.start_fetch(PaneReading(server, uri), partial(self._get, server, uri, size, again))

    async def _get(self, server: str, uri: str, size: int | None, again: bool) -> None:
        answer = self._approved_content(server, uri, size, again)
        await self.show_answer(server, uri, answer, PaneReading.with_resource)

    async def _approved_content(self, server: str, uri: str, size: int | None, again: bool) -> ReadResourceResult:
        if not await self._may_read(server, uri, size, "Read it?"):
            raise Declined("not read: you said no", by="user")
        return await self.host.resources.read(server, uri, again=again)

    async def _may_read(self, server: str, uri: str, size: int | None, question: str) -> bool:
        """Ask before reading a resource that is large by its link or its listing."""
        listed = self.host.catalog.resource(server, uri)
        declared = max(size or 0, (listed.size if listed else 0) or 0)
        limits = self.host.config.limits_for(server)
        if declared <= limits.resource_bytes:
            return True
        from mcphost.tui.kit.facts_table import fact
        from mcphost.tui.kit.modal_screen import AskScreen

        facts = [
            fact("resource", show_line(uri, 500)),
            fact("size", f"{size_text(declared)}, as {server} says"),
        ]
        if declared > limits.message_bytes:
            most = f"A message may have {size_text(limits.message_bytes)} ([limits] message_bytes)"
            facts.append(fact("", f"{most}: one that holds all this is refused when it comes.", "$text-warning"))
        title = f"{server} says that this resource is large. {question}"
        return await self.app.push_screen_wait(AskScreen(title, facts, "go on")) is True

    async def _subscribe(self, server: str, uri: str, *, on: bool) -> None:
        try:
            if on and not await self._may_read(server, uri, None, "Read it whenever it changes?"):
                return
            if on:
                await self.host.resources.subscribe(server, uri)
            else:
                await self.host.resources.unsubscribe(server, uri)
        except McphostError as error:
            self.notify(show(f"Not watched: {error}"), severity="warning", markup=False)

    def _follow_watch(self) -> None:
        """Show what the subscription has read, if the shown resource changed."""
        reading, marks = self.view.reading, self.resources.marks
        result = marks.unshown_result(reading.key) if reading is not None else None
        if reading is not None and result is not None:
            marks.mark_shown(reading.key, time.time())
            self.show_with_notes(reading.with_resource(result, reading.seconds))
        else:
            self.view.show_notes(*self.notes())

    async def _open_form(self, entry: CatalogTemplate) -> None:
        from mcphost.tui.catalog.argument_form import TextArgument

        template = entry.template
        about = Content.assemble((show(unindented(template.description or ""), limit=2_000), "$foreground-muted"))
        title = f"{entry.server} › {show_line(template.label, 60)}"
        arguments = [
            TextArgument(each.name, description=_hint(each.many), required=not each.optional)
            for each in entry.pattern.variables
        ]
        await self.open_form(entry, title, about, template.definition(), arguments)


def _described(entry: AnyResource) -> Resource | ResourceTemplate:
    return entry.resource if isinstance(entry, CatalogResource) else entry.template


def _type(described: Resource | ResourceTemplate) -> str:
    is_folder = isinstance(described, Resource) and described.is_folder
    return "folder" if is_folder else show_line(described.mime_type or "", 40)


def _unlisted(server: str, uri: str) -> CatalogResource:
    return CatalogResource(server, Resource(uri=uri))


def _size(described: Resource | ResourceTemplate) -> str:
    size = described.size if isinstance(described, Resource) else None
    return "" if size is None else size_text(size)


def _hint(many: bool) -> str:
    return "several, separated by commas" if many else ""
