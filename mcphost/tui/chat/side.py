"""The panel beside a chat: the model, its tools and their cost, the usage and its limits, and what it has read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from mcphost.config import ChatConfig
from mcphost.errors import McphostError
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.preferences import Hold
from mcphost.host.models import AvailableModel
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.textual_private.corrections import ScrolledColumn

REVIEW_WORDS: Final[Mapping[Hold, str]] = {
    "never": "results go straight to the model",
    "outside": "you review results from outside first",
    "always": "you review every result first",
}


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """A snapshot of a conversation for the panel."""

    model: str
    """The entry of the model; empty if no model can be used."""
    problem: str
    tools: int
    tokens: int
    costs: tuple[tuple[str, int], ...]
    """The estimated tokens of each server's tools; -1 for a server that is switched off."""
    searching: bool
    dropped: int
    used: str
    outside: str
    hold: Hold
    folders: bool
    """True if requests to the model name the roots."""
    attached: tuple[str, ...]
    instructions: tuple[str, ...]
    """Servers whose instructions are left out of requests to the model."""
    acting: tuple[tuple[str, str], ...] = ()
    """The skills that the model acts on, each with the reason why it can read no file of it."""


def chat_facts(chat: Chat, settings: ChatConfig, servers: tuple[str, ...]) -> ChatFacts:
    model, problem = _model(chat)
    selection = chat.tools
    costs = selection.costs()
    return ChatFacts(
        model.entry if model else "",
        problem,
        len(selection.entries),
        selection.tokens,
        tuple((name, costs.get(name, 0) if chat.settings.on(name) else -1) for name in servers),
        selection.searching,
        len(selection.dropped),
        _used(chat, settings, model),
        chat.outside,
        chat.hold,
        chat.settings.folders,
        tuple(_attached(chat)),
        tuple(name for name in servers if chat.instructions(name) and not chat.told_instructions(name)),
        tuple((each.words, each.problem) for each in chat.skills),
    )


def _model(chat: Chat) -> tuple[AvailableModel | None, str]:
    try:
        return chat.model, ""
    except McphostError as error:
        return None, str(error)


def _used(chat: Chat, settings: ChatConfig, model: AvailableModel | None) -> str:
    usage = chat.usage
    words = f"{usage.amount} of {settings.budget_tokens * chat.allowance:,} tokens"
    if usage.cost is None or (model is not None and model.price is None):
        return words
    bound = "" if settings.budget_cost is None else f" of {settings.budget_cost * chat.allowance:.2f}"
    return f"{words}, {usage.cost:.4f}{bound}" if usage.cost or bound else words


def _attached(chat: Chat) -> Iterator[str]:
    for turn in chat.turns:
        for each in turn.message.attachments:
            yield f"{show_line(each.title or each.name, 60)} · about {each.tokens:,} tokens"


class ChatLine(Widget):
    """The usage in one line, for narrow screens: of its parts as many as there is room for."""

    DEFAULT_CSS = """
    ChatLine { height: 1; padding: 0 1; color: $foreground-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._chat_facts: ChatFacts | None = None

    def show_chat_facts(self, facts: ChatFacts) -> None:
        if facts != self._chat_facts:
            self._chat_facts = facts
            self.refresh()

    def render(self) -> Content:
        facts = self._chat_facts
        if facts is None:
            return Content("")
        parts = [Content.styled(show_line(facts.model or "no model", 24), "bold $foreground")]
        if facts.outside:
            parts.append(Content.styled("▲ has read from outside", "$text-warning"))
        least = 1
        if facts.acting:
            words = [f"acting on {', '.join(name for name, _ in facts.acting)}"]
            words.extend(f"▲ {problem}" for _, problem in facts.acting if problem)
            parts[1:1] = [Content.styled(each, "$text-warning") for each in words[:2]]
            least = len(words[:2]) + 1
        if facts.hold != "never":
            parts.append(Content(REVIEW_WORDS[facts.hold].removesuffix(" first")))
        parts.append(Content(f"{facts.tools} tools, {facts.tokens:,} tokens"))
        parts.append(Content(f"used {facts.used}"))
        while len(parts) > least and Content(" · ").join(parts).cell_length > self.size.width:
            parts.pop()  # the top bar says what is used
        return Content(" · ").join(parts).truncate(self.size.width, ellipsis=True)


class ChatSide(ScrolledColumn, can_focus=False):
    """All of the facts, for wide screens."""

    DEFAULT_CSS = """
    ChatSide {
        width: 38; height: 100%; border: round $border-blurred; border-title-color: $foreground-muted;
        padding: 0 1; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts = FactsTable(labels=9)
        self._chat_facts: ChatFacts | None = None

    def compose(self) -> ComposeResult:
        self.border_title = "This conversation"
        yield self._facts

    def show_chat_facts(self, facts: ChatFacts) -> None:
        if facts != self._chat_facts:
            self._chat_facts = facts
            self._facts.show_facts(list(facts_of(facts)))


def facts_of(facts: ChatFacts) -> Iterator[Fact]:
    if facts.model:
        yield Fact("model", Content.assemble((show_line(facts.model, 40), "bold"), (" · ctrl+o", "$foreground-muted")))
    else:
        yield fact("model", facts.problem, "$text-warning")
    yield fact("used", facts.used)
    if facts.outside:
        yield fact(
            "caution", f"▲ It has read {facts.outside}: calls that write or reach outside ask again.", "$text-warning"
        )
    for words, problem in facts.acting:
        yield fact("skill", f"acting on {words}{': ' if problem else ''}{problem}", "$text-warning")
    yield Fact("review", Content.assemble(REVIEW_WORDS[facts.hold], (" · f9", "$foreground-muted")))
    words = f"{facts.tools}, about {facts.tokens:,} tokens in each request"
    yield Fact("tools", Content.assemble(words, (" · ctrl+t", "$foreground-muted")))
    if facts.searching:
        yield fact("", "too many to send: the model searches them", "$foreground-muted")
    for server, cost in facts.costs:
        text = f"◌ {server} off" if cost < 0 else f"● {server} {cost:,}"
        yield fact("", show_line(text, 60), "$foreground-muted" if cost < 0 else "")
    if facts.dropped:
        yield fact("", f"{facts.dropped} left out: ctrl+t shows why", "$text-warning")
    if facts.folders:
        yield fact("", "roots (shared folders) included: ctrl+t, F", "$foreground-muted")
    if facts.instructions:
        yield fact("", f"instructions of {', '.join(facts.instructions)} not included: ctrl+t, i", "$foreground-muted")
    for number, text in enumerate(facts.attached):
        yield fact("" if number else "attached", text)
