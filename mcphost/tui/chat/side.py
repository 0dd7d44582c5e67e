"""The side of the chat: the model, the tools and their cost, the usage and its limits, and what the model has read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget

from mcphost.config import ChatConfig
from mcphost.dataclass import dataclass
from mcphost.errors import McphostError
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.preferences import Hold
from mcphost.host.models import AvailableModel
from mcphost.protocol.display import show_line
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact

REVIEWED: Final[Mapping[Hold, str]] = {
    "never": "results go straight to the model",
    "outside": "results from outside wait for you first",
    "always": "each result waits for you first",
}
"""What becomes of results, in words."""


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """What of a conversation stands beside it."""

    model: str
    """Empty: there is none."""
    problem: str
    tools: int
    tokens: int
    costs: tuple[tuple[str, int], ...]
    """About the tokens of each server's tools; off are -1."""
    searching: bool
    dropped: int
    used: str
    outside: str
    hold: Hold
    folders: bool
    """Is the model told which folders servers may know of?"""
    attached: tuple[str, ...]
    instructions: tuple[str, ...]
    """Servers that say how to use them, which the model is not told yet."""


def tally_of(chat: Chat, settings: ChatConfig, servers: tuple[str, ...]) -> ChatFacts:
    model, problem = _model(chat)
    box = chat.tools
    costs = box.costs()
    return ChatFacts(
        model.entry if model else "",
        problem,
        len(box.entries),
        box.tokens,
        tuple((name, costs.get(name, 0) if chat.settings.on(name) else -1) for name in servers),
        box.searching,
        len(box.dropped),
        _used(chat, settings, model),
        chat.outside,
        chat.hold,
        chat.settings.folders,
        tuple(_attached(chat)),
        tuple(name for name in servers if chat.instructions(name) and not chat.told_instructions(name)),
    )


def _model(chat: Chat) -> tuple[AvailableModel | None, str]:
    try:
        return chat.model, ""
    except McphostError as error:
        return None, str(error)


def _used(chat: Chat, settings: ChatConfig, model: AvailableModel | None) -> str:
    spent = chat.usage
    about = "about " if spent.guessed else ""
    words = f"{about}{spent.tokens:,} of {settings.budget_tokens * chat.allowance:,} tokens"
    if spent.cost is None or (model is not None and model.price is None):
        return words
    bound = "" if settings.budget_cost is None else f" of {settings.budget_cost * chat.allowance:.2f}"
    return f"{words}, {spent.cost:.4f}{bound}" if spent.cost or bound else words


def _attached(chat: Chat) -> Iterator[str]:
    for turn in chat.turns:
        for each in turn.message.attachments:
            yield f"{show_line(each.title or each.name, 60)} · about {each.tokens:,} tokens"


class ChatLine(Widget):
    """The tally in one line, for a narrow screen."""

    DEFAULT_CSS = """
    ChatLine { height: 1; padding: 0 1; color: $foreground-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._tally: ChatFacts | None = None

    def show_tally(self, tally: ChatFacts) -> None:
        if tally != self._tally:
            self._tally = tally
            self.refresh()

    def render(self) -> Content:
        """As much as fits, the most important first."""
        tally = self._tally
        if tally is None:
            return Content("")
        parts = [Content.styled(show_line(tally.model or "no model", 24), "bold $foreground")]
        if tally.outside:
            parts.append(Content.styled("▲ has read from outside", "$text-warning"))
        if tally.hold != "never":
            parts.append(Content(REVIEWED[tally.hold].removesuffix(" first")))
        parts.append(Content(f"{tally.tools} tools, {tally.tokens:,} tokens"))
        parts.append(Content(f"used {tally.used}"))
        return Content(" · ").join(parts).truncate(self.size.width, ellipsis=True)


class ChatSide(VerticalScroll, can_focus=False):
    """The whole tally, for a wide one."""

    DEFAULT_CSS = """
    ChatSide {
        width: 38; height: 100%; border: round $border-blurred; border-title-color: $foreground-muted;
        padding: 0 1; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts = FactsTable(labels=7)

    def compose(self) -> ComposeResult:
        self.border_title = "This conversation"
        yield self._facts

    def show_tally(self, tally: ChatFacts) -> None:
        self._facts.show_facts(list(facts_of(tally)))


def facts_of(tally: ChatFacts) -> Iterator[Fact]:
    """A tally as facts."""
    if tally.model:
        yield Fact("model", Content.assemble((show_line(tally.model, 40), "bold"), (" · ctrl+o", "$foreground-muted")))
    else:
        yield fact("model", tally.problem, "$text-warning")
    yield fact("used", tally.used)
    if tally.outside:
        yield fact("beware", f"▲ It has read {tally.outside}: writing and open-world calls ask again.", "$text-warning")
    yield Fact("review", Content.assemble(REVIEWED[tally.hold], (" · f9", "$foreground-muted")))
    words = f"{tally.tools}, about {tally.tokens:,} tokens in each request"
    yield Fact("tools", Content.assemble(words, (" · ctrl+t", "$foreground-muted")))
    if tally.searching:
        yield fact("", "too many to name them all: the model searches them", "$foreground-muted")
    for server, cost in tally.costs:
        text = f"◌ {server} off" if cost < 0 else f"● {server} {cost:,}"
        yield fact("", show_line(text, 60), "$foreground-muted" if cost < 0 else "")
    if tally.dropped:
        yield fact("", f"{tally.dropped} left out: ctrl+t says why", "$text-warning")
    if tally.folders:
        yield fact("", "it is told your shared folders: ctrl+t, F", "$foreground-muted")
    if tally.instructions:
        yield fact("", f"not told the instructions of {', '.join(tally.instructions)}: ctrl+t, i", "$foreground-muted")
    for number, text in enumerate(tally.attached):
        yield fact("" if number else "given", text)
