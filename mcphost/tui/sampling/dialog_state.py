"""The states of a sampling dialog: what the user decides or waits for, in words, and the answers in each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, Literal

from textual.content import Content

from mcphost.errors import (
    ConfigError,
    McphostError,
    ModelAnswerCut,
    ModelAnswerMalformed,
    ModelKeyRefused,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
)
from mcphost.host.sampling.request import Sampling, SamplingState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.answers import LATER, SCROLL_FIRST, AnswerOption, naming
from mcphost.tui.results.failure import Failure, Quote

Severity = Literal["information", "warning", "error"]


class SamplingStep(Enum):
    ASKING = "asking"
    STREAMING = "streaming"
    REVIEWING = "reviewing"
    BETWEEN = "between"
    """The user has answered, and the next step follows in a moment."""


@dataclass(frozen=True, slots=True)
class SamplingScreenState:
    """The state of the dialog, besides that of the request."""

    step: SamplingStep
    question: bool = False
    """True if the prompt is in view although there is an answer, or the beginning of one."""
    sendable: bool = False
    """True if there is an answer to send."""
    editing: bool = False
    writing: bool = False
    """True while the user writes the answer, with the prompt in view."""
    unread: bool = False
    """True until the end of what would be sent was in view."""
    below: bool = False
    """True if there is more below the view."""
    context: bool = False
    budget: bool = False

    @property
    def place(self) -> tuple[object, ...]:
        """The fields that decide which part of the dialog is in view."""
        return self.step, self.question, self.editing, self.writing

    @property
    def on_request(self) -> bool:
        """True if keys act on the request, not on the answer."""
        return self.step is SamplingStep.ASKING or (self.question and self.step is SamplingStep.REVIEWING)


def step_of(sampling: Sampling, is_open: bool) -> SamplingStep:
    """``is_open``: a question about the request is open."""
    if sampling.state is SamplingState.STREAMING:
        return SamplingStep.STREAMING
    if not is_open:
        return SamplingStep.BETWEEN
    return SamplingStep.ASKING if sampling.state is SamplingState.ASKING else SamplingStep.REVIEWING


_ALWAYS: Final = frozenset(("back", "json", "full", "pictures"))
_QUESTION_ACTIONS: Final = frozenset(("agree", "edit", "model", "decline", "decline_with", "mute", "park"))
_REQUEST_ACTIONS: Final = frozenset(("limits", "context"))
_IN: Final[Mapping[SamplingStep, frozenset[str]]] = {
    SamplingStep.ASKING: _QUESTION_ACTIONS | _REQUEST_ACTIONS | {"budget"},
    SamplingStep.STREAMING: frozenset(("stop", "decline", "decline_with", "mute", "question", "park")),
    SamplingStep.REVIEWING: _QUESTION_ACTIONS | _REQUEST_ACTIONS | {"again", "question", "budget"},
    SamplingStep.BETWEEN: frozenset(("park",)),
}


def is_active(action: str, state: SamplingScreenState) -> bool:
    """True if this action does something in this state."""
    if state.editing:
        return action in ("take", "back")
    if action == "take" or action not in _ALWAYS | _IN[state.step]:
        return False
    if action in _REQUEST_ACTIONS:
        return state.on_request and (action == "limits" or state.context)
    if action == "agree":
        return state.step is SamplingStep.ASKING or (state.sendable and not state.question)
    return action != "budget" or state.budget


def options(sampling: Sampling, state: SamplingScreenState) -> Iterator[AnswerOption]:
    """The answers of this step, in the order of every question; none between two steps."""
    server = show_line(sampling.server, 40)
    if state.step is SamplingStep.ASKING:
        yield _agree(sampling, state)
        yield AnswerOption("e", "edit the prompt", "edit", "edit")
        yield AnswerOption("m", "choose who answers", "model", "model")
    elif state.step is SamplingStep.REVIEWING:
        yield _send(server, state)
        yield _edit(state)
        if not sampling.model.by_hand:
            again = "ask again" if sampling.error is None else "try again"
            yield AnswerOption("r", again, "again", again)
        yield AnswerOption("m", "ask another model", "model", "other model")
    elif state.step is SamplingStep.STREAMING:
        yield AnswerOption("x", "stop, keep this much", "stop", "stop, keep this much")
    if state.step is not SamplingStep.BETWEEN:
        yield AnswerOption("n", "decline", "decline", "decline")
        yield AnswerOption("t", naming("decline, and tell ", server, " why"), "decline_with", "say why")
        if state.step is SamplingStep.STREAMING:
            yield AnswerOption(_leave_key(state), "leave (it continues)", "park", "leave")
        else:
            yield AnswerOption("p", LATER, "park", "later")


def _agree(sampling: Sampling, state: SamplingScreenState) -> AnswerOption:
    entry = show_line(sampling.model.entry, 40)
    words = "write the answer" if sampling.model.by_hand else f"ask {entry}"
    return AnswerOption("y", SCROLL_FIRST if state.unread else words, "agree", words, locked=state.unread)


def _send(server: str, state: SamplingScreenState) -> AnswerOption:
    """Sends the answer, if there is one and it is in view."""
    if not state.sendable:
        return AnswerOption("y", "nothing to send yet", "agree", "nothing to send", locked=True)
    words = Content("q goes back to the answer, to send it") if state.question else naming("send it to ", server)
    if state.unread and not state.question:
        words = Content(SCROLL_FIRST)
    return AnswerOption("y", words, "agree", "send it", locked=state.question or state.unread)


def _edit(state: SamplingScreenState) -> AnswerOption:
    if state.question:
        return AnswerOption("e", "edit the prompt", "edit", "edit")
    words = "edit the answer" if state.sendable else "write the answer"
    return AnswerOption("e", words, "edit", words)


def _leave_key(state: SamplingScreenState) -> str:
    """Esc goes back to the answer first, if the prompt is in view."""
    return "p" if state.question else "esc"


def default_key(sampling: Sampling, state: SamplingScreenState) -> str:
    """The key of the answer that is selected when the step begins."""
    if state.step is SamplingStep.STREAMING:
        return _leave_key(state)
    if state.step is SamplingStep.ASKING or (state.sendable and not state.question):
        return "y"
    return "e" if state.question or sampling.model.by_hand else "r"


def other_keys(state: SamplingScreenState) -> Iterator[AnswerOption]:
    """The keys for the line below the answers; while a text is edited, the only ones."""
    if state.editing:
        yield AnswerOption("ctrl+r", "", "take", "review what would be sent" if state.writing else "keep changes")
        yield AnswerOption("esc", "", "back", "to the answers (your text is kept)" if state.writing else "drop changes")
        return
    if state.step is SamplingStep.BETWEEN:
        yield AnswerOption("esc", "", "park", "leave (it continues)")
        return
    if state.below:
        yield AnswerOption("space", "", "page(1)", "▼ more below")
    if state.on_request:
        yield AnswerOption("l", "", "limits", "limits")
        if state.context:
            yield AnswerOption("c", "", "context", "add context")
    if state.step in (SamplingStep.STREAMING, SamplingStep.REVIEWING):
        yield AnswerOption("q", "", "question", "the answer" if state.question else "the prompt")
    if state.step in (SamplingStep.ASKING, SamplingStep.REVIEWING):
        yield AnswerOption("f", "", "full", "read in full")
        yield AnswerOption("v", "", "json", "JSON")
        if state.budget:
            yield AnswerOption("b", "", "budget", "budget")
    yield AnswerOption("M", "", "mute", "mute")
    yield AnswerOption("?", "", "app.keys", "all keys")


def state_line(
    sampling: Sampling, state: SamplingScreenState, cause: str, seconds: float | None, retry_seconds: float
) -> Content:
    """The state in one line; ``cause`` is safe to show.

    ``seconds`` is how long the answer takes, ``retry_seconds`` the time until a busy model is asked again.
    """
    name = show_line(sampling.model.entry, 40)
    if state.step is SamplingStep.STREAMING:
        return Content.styled(f"◐ {_streaming(sampling, name, seconds, retry_seconds)}", "$text-warning")
    if state.step is SamplingStep.BETWEEN:
        return Content.styled("◐ one moment…", "$text-warning")
    if state.step is SamplingStep.ASKING:
        words = (
            "You are the model: write an answer to this prompt?"
            if sampling.model.by_hand
            else f"Send this prompt to {name}?"
        )
        return Content.assemble(
            ("? ", "bold $text-warning"), (words, "bold"), (f"  asked {cause}", "$foreground-muted")
        )
    return Content.assemble(("? ", "bold $text-warning"), (_reviewing(sampling, state, name), "bold"))


def _streaming(sampling: Sampling, name: str, seconds: float | None, retry_seconds: float) -> str:
    if sampling.waiting is not None:
        busy = sampling.waiting
        again = f"trying again in {retry_seconds:.0f} s, {busy.attempt} of {busy.most}"
        return f"{name} is busy: {again} · {show_line(busy.reason, 120)}"
    tokens, took = sampling.usage.output_tokens, "" if seconds is None else f" · {seconds:.0f} s"
    if sampling.text:
        count = f"{tokens:,} tokens" if tokens else f"about {len(sampling.text) // 4:,} tokens"
        return f"{name} is answering · {count}{took}"
    if sampling.thought:
        return f"{name} is thinking · {len(sampling.thought):,} characters (not sent){took}"
    return f"{name} was asked{took}"


def _reviewing(sampling: Sampling, state: SamplingScreenState, name: str) -> str:
    if state.writing:
        return "You are the model: write the answer"
    server = show_line(sampling.server, 40)
    if not state.sendable:
        return f"Nothing to send to “{server}” yet" if sampling.error is None else f"{name} gave no answer"
    if sampling.error is not None:
        return f"The answer of {name} broke off. Send this much to “{server}”?"
    return (
        f"You stopped the answer. Send this much to “{server}”?"
        if sampling.stopped
        else f"Send this answer to “{server}”?"
    )


_HEADLINES: Final[tuple[tuple[type[McphostError], str], ...]] = (
    (ModelUnreachable, "The model could not be reached"),
    (ModelKeyRefused, "The model's API key is missing or was not accepted"),
    (ModelOverloaded, "The model is overloaded"),
    (ModelAnswerCut, "The answer broke off"),
    (ModelAnswerMalformed, "The model's answer cannot be used"),
    (ModelRefused, "The model rejected the request"),
    (ConfigError, "The model's configuration cannot be used"),
)


def failure_of_model(error: McphostError) -> Failure:
    headline = next((words for kind, words in _HEADLINES if isinstance(error, kind)), "The model gave no answer")
    again = "It would fail again: correct the cause first." if error.lasting else "r tries again."
    advice = f"{again} m asks another model, e writes the answer, n declines. {_NOT_TOLD}"
    return Failure("✖", headline, advice, quotes=(Quote("what happened", str(error)),))


_NOT_TOLD: Final = "The server learns nothing of it."


def ended_words(sampling: Sampling) -> tuple[str, Severity]:
    """The outcome of the request, for a notification, and its severity."""
    server = show_line(sampling.server, 60)
    match sampling.state:
        case SamplingState.SENT:
            by = show_line(sampling.result.model if sampling.result else sampling.answered_by, 60)
            return f"Sent to {server} as the answer of {by}.", "information"
        case SamplingState.WITHDRAWN:
            return f"{server} withdrew its sampling request: nothing was sent.", "warning"
        case SamplingState.FAILED:
            return f"{server} got no model's answer: {show_line(str(sampling.error), 300)}", "error"
    why = f" ({show_line(sampling.refusal, 200)})" if sampling.refusal else ""
    return f"Declined{why}. Nothing else was sent to {server}.", "information"


class SamplingClock:
    """Measures the answers of ``sampling``; times in seconds."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._attempt = sampling.attempts
        self._began: float | None = None
        self._ended: float | None = None
        self._waiting: object = None
        self._waits_until = 0.0

    def update(self) -> None:
        """Must be called whenever the request may have changed."""
        now, sampling = time.monotonic(), self._sampling
        if sampling.attempts != self._attempt:
            streams = sampling.state is SamplingState.STREAMING
            self._attempt, self._began, self._ended = sampling.attempts, now if streams else None, None
        if sampling.state is not SamplingState.STREAMING and self._ended is None:
            self._ended = now
        if sampling.waiting is not self._waiting:
            self._waiting = sampling.waiting
            self._waits_until = now + (0.0 if sampling.waiting is None else sampling.waiting.seconds)

    @property
    def seconds(self) -> float | None:
        """The duration of the current or last answer."""
        return None if self._began is None else (self._ended or time.monotonic()) - self._began

    @property
    def retry_seconds(self) -> float:
        """Seconds until a busy model is asked again."""
        return max(0.0, self._waits_until - time.monotonic())
