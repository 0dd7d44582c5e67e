"""The state of one sampling request: what the server asked for, what is asked of which model, and the answer.

Specification: client/sampling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final, Self

from mcphost.errors import McphostError, UnknownName
from mcphost.host.models import HUMAN, AvailableModel, ModelCatalog
from mcphost.host.sampling.draft import SamplingDraft, SamplingEstimate, estimate
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import Block, CreateMessageRequest, CreateMessageResult, ToolUse, text_block
from mcphost.providers.base import (
    CollectedAnswer,
    ModelRequest,
    ProviderEvent,
    RetryScheduled,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    lacking,
)

MOST_THOUGHT: Final = 100_000
"""Characters of a model's thoughts that are kept: they are shown and nothing else."""


class SamplingState(Enum):
    ASKING = "waiting for you: may a model be asked?"
    STREAMING = "the model is answering"
    REVIEWING = "waiting for you: may this be sent?"
    SENT = "sent"
    REFUSED = "refused"
    FAILED = "failed"
    WITHDRAWN = "withdrawn by the server"

    @property
    def ended(self) -> bool:
        """True if the request is over."""
        return self not in (SamplingState.ASKING, SamplingState.STREAMING, SamplingState.REVIEWING)


@dataclass(frozen=True, slots=True)
class SamplingEdit:
    """Changes to what is asked; None leaves a part as it is.

    As the content of an acceptance of the review: ask again, with these changes.
    """

    request: ModelRequest | None = None
    """Made from `Sampling.request` by ``dataclasses.replace``."""
    model: str | None = None
    """The entry of `Sampling.models` that shall answer."""


@dataclass(frozen=True, slots=True)
class SamplingReply:
    """The user's reply to the server, instead of the model's answer or without asking a model."""

    blocks: tuple[Block, ...]
    model: str = ""
    """Author to report. Empty means the model that answered, or the user."""

    @classmethod
    def of(cls, text: str) -> Self:
        return cls((text_block(text),))


class Sampling:
    """One request of a server's for a language model's answer.

    While a question is open (ASKING, REVIEWING) what goes on is said by its answer; `stop` and `refuse` are for the
    time between the two. Everything else is to be read.
    """

    def __init__(
        self,
        number: int,
        server: str,
        call: int | None,
        tool: str,
        asked: CreateMessageRequest,
        draft: SamplingDraft,
        models: ModelCatalog,
        changed: Callable[[Sampling], None],
    ) -> None:
        self.number, self.server, self.call, self.tool = number, server, call, tool
        self.asked = asked
        """The server's request."""
        self.request = draft.request
        """The request to the model."""
        self.notes = draft.notes
        """The departures from the server's request, in sentences."""
        self.context = draft.context
        """Earlier texts of the server that `add_context` may add; empty if it did not ask for context."""
        self.context_added = draft.context_added
        self.model: AvailableModel = draft.model
        self.reason = draft.reason
        """Why this model, in a line."""
        self.rule = ""
        """Why it is asked about, or is not."""
        self.edited = False
        """True if the user changed the request."""
        self.state = SamplingState.ASKING
        self.attempts = 0
        """The number of times a model was asked."""
        self.usage = TokenUsage()
        """Tokens of the last attempt, as the model reported them."""
        self.waiting: RetryScheduled | None = None
        """Set while the provider is overloaded and will be asked again."""
        self.blocks: tuple[Block, ...] = ()
        """The answer, once it is whole, was stopped, broke off or was written."""
        self.stop_reason: str | None = None
        self.answered_by = ""
        """The model that answered, as it calls itself."""
        self.stopped = False
        """True if the user stopped the answer."""
        self.rewritten = False
        """True if the answer is in the user's words."""
        self.error: McphostError | None = None
        """Why the model did not answer the last time, or not to the end."""
        self.refusal = ""
        """Why it was refused, as the user said or mcphost does."""
        self.refused_by_user = False
        self.result: CreateMessageResult | None = None
        """The result that the server got."""
        self._models, self._changed = models, changed
        self._estimate: SamplingEstimate | None = None
        self._text: list[str] = []
        self._thought = ""
        self._work: asyncio.Task[object] | None = None

    @property
    def models(self) -> tuple[AvailableModel, ...]:
        """The models that the user may choose from."""
        return self._models.all

    @property
    def estimate(self) -> SamplingEstimate:
        """The estimated cost of asking this."""
        if self._estimate is None:
            self._estimate = estimate(self.request, self.model.price)
        return self._estimate

    @property
    def cost(self) -> float | None:
        """The cost of the last answer; None if unknown."""
        return self.model.price.cost_of(self.usage) if self.model.price else None

    @property
    def problem(self) -> str:
        """Why the model cannot take this request; empty if it can."""
        kind = lacking(self.request, self.model.able)
        return f"it takes no {kind}; choose another model or leave that out" if kind else ""

    @property
    def text(self) -> str:
        """The text of the answer as far as it came."""
        self._text[:] = ["".join(self._text)]
        return self._text[0]

    @property
    def thought(self) -> str:
        """The model's thoughts before it answered, as far as they came; not part of the answer."""
        return self._thought

    @property
    def uses(self) -> tuple[ToolUse, ...]:
        """The tools the model wants the server to call."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    # What the user does.

    def edit(self, edit: SamplingEdit) -> None:
        """Change what is asked, before a model is; never more tokens than the server wants. Raises UnknownName."""
        request, model = edit.request or self.request, self._models.find(edit.model or self.model.entry)
        if model is None:
            known = ", ".join(each.entry for each in self.models)
            raise UnknownName(f"no model is called {edit.model!r}; there are: {known}")
        most = max(1, min(request.max_tokens, self.asked.max_tokens))
        request = replace(request, max_tokens=most)
        self.edited = self.edited or request != self.request
        if model != self.model:
            self.model, self.reason = model, "you chose it"
        self.request, self._estimate = request, None
        self._changed(self)

    def add_context(self) -> None:
        """Add what this server said before, which it asks for, to the system prompt."""
        if self.context and not self.context_added:
            self.context_added = True
            self.edit(SamplingEdit(replace(self.request, system=f"{self.request.system}\n\n{self.context}".strip())))

    def stop(self) -> None:
        """Stop the answer; what came goes to review."""
        if self.state is SamplingState.STREAMING and self._work is not None:
            self.stopped = True
            self._work.cancel()

    def refuse(self, reason: str = "") -> None:
        """Stop the answer and refuse; ``reason`` is for the server."""
        if self.state is SamplingState.STREAMING and self._work is not None:
            self.refused_by_user, self.refusal = True, reason
            self._work.cancel()

    # For `SamplingService` and `_ask_model`.

    @property
    def interrupted(self) -> bool:
        """True if the user interrupted the model."""
        return self.stopped or self.refused_by_user

    def attach(self, work: asyncio.Task[object] | None) -> None:
        """The task that asks the model."""
        self._work = work

    def enter(self, state: SamplingState) -> None:
        """Go on to ``state``."""
        self.state, self.waiting = state, None
        self._changed(self)

    def begin(self) -> None:
        """Another attempt to ask the model begins."""
        self.attempts += 1
        self.usage, self.blocks, self.stop_reason, self.error = TokenUsage(), (), None, None
        self.answered_by, self.stopped = "", False
        self._text.clear()
        self._thought = ""
        self.enter(SamplingState.STREAMING)

    def take(self, event: ProviderEvent) -> None:
        """The model goes on."""
        self.waiting = event if isinstance(event, RetryScheduled) else None
        match event:
            case TextDelta():
                self._text.append(event.text)
            case ThoughtDelta():
                self._thought = (self._thought + event.text)[:MOST_THOUGHT]
            case TokenUsage():
                self.usage = self.usage.later(event)
        self._changed(self)

    def gathered(self, gathered: CollectedAnswer, error: McphostError | None = None) -> None:
        """So much came; with ``error`` it is not all."""
        result, flawed = gathered.result, {use.id for use in gathered.flawed}
        self.usage, self.error = gathered.usage, error
        self.blocks = tuple(block for block in result.blocks if _holds(block, flawed))
        self.stop_reason, self.answered_by = result.stop_reason, result.model

    def write(self, reply: SamplingReply) -> None:
        """The answer is this."""
        self.rewritten = self.rewritten or reply.blocks != self.blocks
        self.blocks, self.error = reply.blocks, None
        self.answered_by = reply.model or self.answered_by or (self.model.name if self.model.by_hand else HUMAN)

    def send(self, name: str) -> CreateMessageResult:
        """Return the result for the server; ``name`` is the author if no model answered."""
        reason = "toolUse" if self.uses else self.stop_reason
        if not self.uses and reason == "toolUse":  # they were taken out
            reason = "endTurn"
        if reason is None and self.rewritten:
            reason = "endTurn"
        self.result = CreateMessageResult(self.blocks or (text_block(""),), self.answered_by or name, reason)
        return self.result


def _holds(block: Block, flawed: set[str]) -> bool:
    """True if a block of an answer is worth sending."""
    match block:
        case ToolUse():
            return block.id not in flawed
        case TextContent():
            return bool(block.text)
    return True
