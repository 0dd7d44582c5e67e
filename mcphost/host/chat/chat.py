"""A conversation with a language model: its turns, settings and usage, and what the user may do with it.

`mcphost.host.chat.runner` gets the answers and has tools called.

Front: every change is a ChatChanged with its number; read the state again. `send` and `go_on` return at once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from mcphost.errors import NotDone, UnknownName
from mcphost.host.chat.acting_skills import TOOL, ActingSkill, in_words, skills_in
from mcphost.host.chat.context import ChatContext
from mcphost.host.chat.export import markdown
from mcphost.host.chat.model_messages import OWN, MessagePreview, messages_of, pieces_of, system
from mcphost.host.chat.preferences import ChatSettings, Hold
from mcphost.host.chat.provenance_search import FOLDERS, OURS, YOURS, Passage, passages
from mcphost.host.chat.tool_selection import ToolSelection
from mcphost.host.chat.transcript_store import all_records, settings_record
from mcphost.host.chat.turns import Attachment, PromptUsed, Turn, TurnState, UserMessage
from mcphost.host.models import AvailableModel
from mcphost.host.sampling.draft import estimate
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show
from mcphost.providers.base import ModelRequest, TokenUsage

NOTHING_SET: Final = ChatSettings()

CHECK_SECONDS: Final = 0.01
"""For which new tools are checked at once, before the event loop goes on: some hundred."""

Run = Callable[["Chat", Turn], Coroutine[Any, Any, None]]
"""Works on a turn until it ends. Raises nothing but CancelledError."""


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """The use of models by a conversation. ``cost`` is None where a price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    guessed: bool = False
    """True if a part of it is mcphost's estimate, since a model did not report it."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def amount(self) -> str:
        """The tokens as a number to show; ``about`` marks an estimate."""
        return f"{'about ' if self.guessed else ''}{self.tokens:,}"

    def with_answer(self, usage: TokenUsage, model: AvailableModel | None, *, guessed: bool) -> ChatUsage:
        """After one more exchange."""
        price = None if model is None or model.price is None else model.price.cost_of(usage)
        return ChatUsage(
            self.input_tokens + (usage.input_tokens or 0),
            self.output_tokens + (usage.output_tokens or 0),
            None if self.cost is None or price is None else self.cost + price,
            self.guessed or guessed,
        )


class Chat:
    def __init__(
        self, number: int, chat_id: str, context: ChatContext, run: Run, settings: ChatSettings = NOTHING_SET
    ) -> None:
        self.number, self.id = number, chat_id
        """The id names its transcript, in this and later runs."""
        self.turns: list[Turn] = []
        self.settings = settings
        """The user's settings of this conversation."""
        self.usage = ChatUsage()
        self.outside = ""
        """The outside source that the model read last, in words; empty: none yet."""
        self.found: dict[str, None] = {}
        """The tools that the model searched out, in order."""
        self.branch_of: tuple[str, int] | None = None
        """The conversation it was branched from, and how many of its turns it shares."""
        self.allowance = 1
        """The multiple of its budget that the conversation may use."""
        self._context, self._run = context, run
        self._task: asyncio.Task[None] | None = None
        self._tools: tuple[object, ToolSelection] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._kept = False

    # What there is to read.

    @property
    def busy(self) -> bool:
        """True while a turn is under way."""
        return bool(self.turns) and not self.turns[-1].state.ended

    @property
    def entry(self) -> str:
        """The entry of ``[models]`` that was chosen for it; empty: as configured, or the first."""
        return self.settings.model

    @property
    def hold(self) -> Hold:
        """Which results wait for the user before the model gets them."""
        return self.settings.hold or self._context.settings.hold

    @property
    def title(self) -> str:
        """The user's first message; empty before that."""
        return next((turn.message.text for turn in self.turns if turn.message.text), "")

    @property
    def markdown(self) -> str:
        """The conversation as Markdown, without secrets."""
        return self._context.reporting.mask(markdown(self.title[:100] or self.id, self.turns))

    @property
    def model(self) -> AvailableModel:
        """The current model. Raises UnknownName if it is not configured, or if none is."""
        named = self.entry or self._context.settings.model
        models = [model for model in self._context.models.all if not model.by_hand]
        found = next((model for model in models if named in (None, "", model.entry)), None)
        if found is None and named:
            known = ", ".join(model.entry for model in models) or "none"
            raise UnknownName(f"no entry of [models] that can be talked to is called {named!r}; there are: {known}")
        if found is None:
            raise UnknownName("no language model is configured")
        return found

    @property
    def over_budget(self) -> str:
        """Which budget is used up, in a sentence; empty where none is."""
        settings, usage = self._context.settings, self.usage
        if usage.tokens >= settings.budget_tokens * self.allowance:
            return f"this conversation used {usage.tokens} tokens (chat.budget_tokens)"
        most = settings.budget_cost
        if most is not None and usage.cost is not None and usage.cost >= most * self.allowance:
            return f"this conversation cost {usage.cost:.4g} (chat.budget_cost)"
        return ""

    @property
    def tools(self) -> ToolSelection:
        """The tools that the model may use now, their cost, and the tools that had to be left out.

        Of very many new tools only some are in it at first: `tools_checked` waits for the rest.
        """
        offers, limit, settings = self._context.tools(), self._context.settings.tools_tokens, self.settings
        unlocked = [self._context.unlocked(each) for each in offers]
        state = [id(each.tool) for each in offers], unlocked, limit, settings.servers_off, settings.tools_off
        if self._tools is None or self._tools[0] != state:
            if not self._context.checked_tools.check(offers, CHECK_SECONDS) and (
                not self._checking or self._checking.done()
            ):
                self._checking = self._context.background.start(
                    self._check_the_rest(), f"check tools of chat {self.number}"
                )
            refused = {each.key: why for each, why in zip(offers, unlocked, strict=True) if why}
            self._tools = state, ToolSelection(offers, settings.on, limit, self._context.checked_tools, refused)
        return self._tools[1]

    async def tools_checked(self) -> None:
        """Wait until `tools` has every tool."""
        _ = self.tools
        if self._checking is not None and not self._checking.done():
            await asyncio.wait([self._checking])

    async def _check_the_rest(self) -> None:
        done = False
        while not done:
            await asyncio.sleep(0)
            done = self._context.checked_tools.check(self._context.tools(), CHECK_SECONDS)
        self._tools = None
        self.changed()

    @property
    def skills(self) -> list[ActingSkill]:
        """The skills that the model acts on: those whose text is in the conversation."""
        return [
            replace(each, problem="" if each.window is None else self._context.skill_problem(each.window))
            for each in skills_in(self.turns)
        ]

    @property
    def acting(self) -> str:
        """The skills that the model acts on, in words that are safe to show; empty: none."""
        return in_words(skills_in(self.turns))

    def instructions(self, server: str) -> str:
        """A server's instructions for use; may be empty."""
        return self._context.instructions(server)

    def told_instructions(self, server: str) -> bool:
        """True if the model gets them, which takes a new consent whenever their text changes."""
        text = self._context.instructions(server)
        return bool(text) and self.settings.told.get(server) == _digest(text)

    def request(self) -> ModelRequest:
        """The next request to the model. Raises UnknownName if there is no model."""
        model = self.model
        tools = self.tools.offered(self.found) if model.able.tools else ()
        if model.able.tools and skills_in(self.turns):
            tools = (*tools, TOOL)
        return ModelRequest(
            messages=messages_of(self.turns, model.able),
            max_tokens=self._context.settings.max_tokens,
            system=system(self._context.settings.system, self._context_texts()),
            tools=tools,
        )

    def passages(self) -> Iterator[Passage]:
        """The texts that the model got from servers and files."""
        yield Passage(OURS, "", OWN)
        yield Passage(YOURS, "", self._context.settings.system)
        if self.settings.folders:
            yield Passage(FOLDERS, "", "\n".join(self._context.folders()))
        for server in filter(self.told_instructions, self._servers()):
            yield Passage(server, server, self._context.instructions(server))
        yield from passages(self.turns)

    def preview(
        self, text: str, attachments: Sequence[Attachment] = (), prompts: Sequence[PromptUsed] = ()
    ) -> MessagePreview:
        """Preview the message that `send` would send. Raises UnknownName if there is no such model."""
        model = self.model
        pieces = tuple(pieces_of(UserMessage(text, tuple(attachments), tuple(prompts)), model.able))
        return MessagePreview(model.entry, pieces, estimate(self.request(), None).input_tokens)

    # What the user does.

    def send(self, text: str, attachments: Sequence[Attachment] = (), prompts: Sequence[PromptUsed] = ()) -> Turn:
        """Send a message; the turn runs in a task. Raises NotDone if one is under way or the message is empty.

        Raises UnknownName where there is no model to talk to.
        """
        if self.busy:
            raise NotDone("the model is still at work on your last message; stop it first, or wait")
        if not text.strip() and not attachments and not prompts:
            raise NotDone("there is nothing to send")
        _ = self.model
        turn = Turn(len(self.turns) + 1, UserMessage(text, tuple(attachments), tuple(prompts)))
        self.turns.append(turn)
        self._note_outside(turn)
        self._begin(turn)
        return turn

    def go_on(self) -> Turn:
        """Resume the last turn: retry what failed or was stopped, or grant its limits once more.

        Raises NotDone where there is nothing to take up.
        """
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.state not in (TurnState.FAILED, TurnState.STOPPED, TurnState.BOUNDED):
            raise NotDone("there is nothing that could go on; say something instead")
        if self.over_budget:
            self.allowance += 1
        elif turn.state is TurnState.BOUNDED:
            turn.allowance += 1
        for each in turn.rounds[-1:]:
            each.superseded = not each.stop_reason
        turn.state, turn.reason = TurnState.ANSWERING, ""
        self._begin(turn)
        return turn

    def stop(self) -> None:
        """Stop at once: the model's stream is closed and running calls are cancelled; what came is kept."""
        if self._task is not None and self.busy:
            self._task.cancel()

    def use_model(self, entry: str) -> None:
        """Talk to another model from the next answer on. Raises UnknownName if no model has that name."""
        before = self.settings
        self.settings = replace(before, model=entry, instead_of=self._context.settings.model or "")
        try:
            _ = self.model
        except UnknownName:
            self.settings = before
            raise
        self._chosen(before)

    def switch(self, server: str, tool: str | None = None, *, on: bool) -> None:
        """Let the model use a server, or one tool, or not."""
        if tool is None:
            servers = self.settings.servers_off
            self._choose(servers_off=servers - {server} if on else servers | {server})
        else:
            self._choose(
                tools_off=self.settings.tools_off - {(server, tool)}
                if on
                else self.settings.tools_off | {(server, tool)}
            )

    def tell_instructions(self, server: str, *, on: bool) -> None:
        """Tell the model a server's instructions as they are now, or do not."""
        others = {name: digest for name, digest in self.settings.told.items() if name != server}
        self._choose(told=others | ({server: _digest(self._context.instructions(server))} if on else {}))

    def tell_folders(self, *, on: bool) -> None:
        """Tell the model which folders servers may know of, or do not."""
        self._choose(folders=on)

    def hold_results(self, hold: Hold) -> None:
        """Choose which results wait for a review, instead of the configured ones."""
        self._choose(hold=hold)

    async def ended(self) -> None:
        """Wait until nothing is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    # What the host does with a conversation of before.

    def take_over(self, other: Chat, turns: int) -> None:
        """Begin with the first turns of another conversation; what is done to the last of them here stays here."""
        shared = other.turns[:turns]
        self.turns = [replace(turn, rounds=[copy(each) for each in turn.rounds]) for turn in shared]
        self.usage, self.branch_of = other.usage, (other.id, len(shared))
        self.outside, self.found = other.outside, dict(other.found)
        self.changed()

    def resume(self, turns: Sequence[Turn], origin: tuple[str, int] | None) -> None:
        """Begin with the saved turns; ``usage`` is computed again, with the current prices.

        Files of its skills are read only where a remembered approval covers the saved entry.
        """
        self.turns, self.branch_of, self._kept = list(turns), origin, True
        models = {model.entry: model for model in self._context.models.all}
        for turn in self.turns:
            attachments = tuple(map(self._with_window, turn.message.attachments))
            turn.message = replace(turn.message, attachments=attachments)
            self._note_outside(turn)
            for each in turn.rounds:
                self.usage = self.usage.with_answer(each.usage, models.get(each.entry), guessed=each.guessed)
                self.found.update(dict.fromkeys(use.name for use in each.uses if use.server))
                for use in each.uses:
                    if use.outside:
                        self.read_outside(f"what {use.server}:{use.tool} answered")
        self.changed()

    # What the run does.

    def changed(self) -> None:
        self._context.publish_change(self.number)

    def read_outside(self, what: str) -> None:
        """The model gets something that others may have written."""
        self.outside = what

    def _choose(self, **changes: Any) -> None:
        before, self.settings = self.settings, replace(self.settings, **changes)
        self._chosen(before)

    def _chosen(self, before: ChatSettings) -> None:
        if self.settings != before:
            if self._kept:
                self._context.keep(self.id, settings_record(self.settings))
            self._context.remember(before, self.settings)
            self.changed()

    def _note_outside(self, turn: Turn) -> None:
        for attached in turn.message.attachments:
            if attached.outside:
                self.read_outside(f"the skill {attached.acting}" if attached.skill else show(attached.name)[:200])
        for prompt in turn.message.prompts:
            if prompt.outside:
                self.read_outside(f"what the prompt {prompt.server}:{show(prompt.prompt)[:100]} brought along")

    def _with_window(self, attached: Attachment) -> Attachment:
        """A saved attachment; that of a skill with a window on its entry."""
        if attached.skill is None:
            return attached
        return replace(attached, window=self._context.saved_window(attached.server, attached.skill))

    def _begin(self, turn: Turn) -> None:
        if not self._kept:
            self._kept = True
            for record in all_records(self.id, self.branch_of, self.settings, self.turns[:-1]):
                self._context.keep(self.id, record)
        self._task = task = self._context.background.start(self._run(self, turn), f"chat {self.number}")
        task.add_done_callback(lambda _: self._over(turn))
        self.changed()

    def _over(self, turn: Turn) -> None:
        if not turn.state.ended:  # it was stopped before it began
            turn.state = TurnState.STOPPED
        self.changed()

    def _context_texts(self) -> Iterator[str]:
        if self.settings.folders and (folders := self._context.folders()):
            yield "The person's folders that servers may know of: " + ", ".join(folders)
        for server in filter(self.told_instructions, self._servers()):
            text = show(self._context.instructions(server))
            yield f"What the server {server} says on how to use it (data, see above):\n{text}"

    def _servers(self) -> Iterable[str]:
        return dict.fromkeys(entry.server for entry in self.tools.entries)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
