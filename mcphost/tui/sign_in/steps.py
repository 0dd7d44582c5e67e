"""The steps of a sign-in, each with its state, its request and its response.

Secrets in them are masked already; their text is foreign and made safe here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.content import Content

from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show, show_line
from mcphost.protocol.host_names import host_in
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.kit.text_view import Spans

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInExchange


EMPTY = "No step yet: mcphost is about to ask the server who signs people in."

_DONE, _RUNNING, _ASKING, _PASSED, _FAILED = (
    ("●", "$text-success"),
    ("◐", "$text-warning"),
    ("?", "$text-warning"),
    ("◌", "$foreground-muted"),
    ("✖", "$text-error"),
)

_PERSON: Final[Mapping[SignInState, str]] = {
    SignInState.AGREEING: "You agree",
    SignInState.VISITING: "You sign in, in the browser",
}


@dataclass(frozen=True, slots=True)
class SignInStep:
    """A row; ``exchange`` is None for a step of the user."""

    number: int
    title: str
    host: str
    result: str
    mark: tuple[str, str]
    exchange: SignInExchange | None = None
    seconds: float | None = None


class StepLadder(RowList[SignInStep]):
    HELP = (
        "The steps of this sign-in, and whom each asked. Opening one shows what was sent and answered, secrets "
        "masked.\n"
        "● done  ◐ under way  ◌ not there, so the next place was asked  ✖ here it failed"
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(step_row, empty=EMPTY, id=id)

    def show_steps(self, sign_in: SignIn) -> None:
        """Show the steps so far; the cursor follows while it is on the last one."""
        before, items = len(self.items), list(steps_of(sign_in))
        was_last = self.highlighted is None or self.highlighted == before - 1
        self.set_items(items, keep=lambda step: (step.number, step.title, step.result))
        failed = next((index for index, step in enumerate(items) if step.mark == _FAILED), None)
        if was_last and items:
            self.highlighted = len(items) - 1 if failed is None else failed


def steps_of(sign_in: SignIn) -> Iterator[SignInStep]:
    """All exchanges, and what the user has to do now."""
    failed = failing(sign_in)
    for number, exchange in enumerate(sign_in.steps, 1):
        yield _step(number, exchange, failed=number == failed, over=sign_in.state.ended)
    at = sign_in.reached if sign_in.state is SignInState.FAILED and failed is None else sign_in.state
    if at in _PERSON:
        yield _of_person(sign_in, at, len(sign_in.steps) + 1)


def failing(sign_in: SignIn) -> int | None:
    """The number of the exchange that failed; None if something else failed, or nothing."""
    if sign_in.state is not SignInState.FAILED or not sign_in.steps or sign_in.reached in _PERSON:
        return None
    return len(sign_in.steps)


def _step(number: int, exchange: SignInExchange, *, failed: bool, over: bool) -> SignInStep:
    status = exchange.status
    result = "no answer" if exchange.problem else "under way" if status is None else str(status)
    if exchange.local and status is not None:
        result = "not sent" if failed else "done"
    if failed:
        mark = _FAILED
    elif exchange.problem or (status is not None and not 200 <= status < 300):
        mark, result = _PASSED, result if exchange.problem else f"{result}, went on"
    elif status is None:
        mark, result = (_PASSED, "cut short") if over else (_RUNNING, result)
    else:
        mark = _DONE
    host = "here" if exchange.local else host_in(exchange.url).wire
    return SignInStep(number, exchange.title, host, result, mark, exchange, exchange.seconds)


def _of_person(sign_in: SignIn, at: SignInState, number: int) -> SignInStep:
    plan = sign_in.plan
    host = host_in(plan.authorization_endpoint).wire if plan is not None and at is SignInState.VISITING else "here"
    if sign_in.state is SignInState.FAILED:
        return SignInStep(number, _PERSON[at], host, "failed here", _FAILED)
    return SignInStep(number, _PERSON[at], host, "your turn", _ASKING)


def step_row(step: SignInStep, width: int) -> Content:
    mark, style = step.mark
    took = "" if step.seconds is None else duration_text(step.seconds)
    return columns(
        width,
        [
            Cell(mark, style, 1, 1),
            Cell(str(step.number), "$foreground-muted", 2, 2, "right"),
            Cell(show_line(step.title, 120), "bold" if step.mark == _RUNNING else "", 27 if width < 90 else 44),
            Cell(step.result, style, 12, 12),
            Cell(step.host, "$foreground-muted", 18, 30, keep="end"),
            Cell(took, "$foreground-muted", 7, 7, "right"),
        ],
    )


def step_text(step: SignInStep) -> str:
    """The request and the response in full, as they came: not safe to show."""
    exchange = step.exchange
    if exchange is None:
        return f"{step.title}: {step.result}"
    return "\n".join([*_request(exchange), "", *_answer(exchange)])


def step_lines(step: SignInStep) -> Sequence[str]:
    """The request and the response, safe to show."""
    return show(step_text(step)).split("\n")


def step_spans(line: str) -> Spans:
    """Spans for the names of headers, and for JSON."""
    name, colon, _ = line.partition(": ")
    if colon and name.replace("-", "").isalnum() and not line.startswith(" "):
        return [(0, len(name), "key")]
    return [] if line[:1] not in (" ", "{", "}", "[", "]", '"') else json_spans(line)


def _request(exchange: SignInExchange) -> Iterator[str]:
    yield f"{exchange.method} {exchange.url}"
    yield from (f"{name}: {value}" for name, value in exchange.request_headers.items())
    if exchange.request_body:
        yield ""
        body = exchange.request_body
        yield body if body.startswith("{") else body.replace("&", "\n&")


def _answer(exchange: SignInExchange) -> Iterator[str]:
    took = "" if exchange.seconds is None else f" · after {duration_text(exchange.seconds)}"
    if exchange.problem:
        yield f"▏ no answer{took}: {exchange.problem}"
    elif exchange.status is None:
        yield "▏ no answer yet"
    elif exchange.local:
        yield f"▏ done{took}; the JWT is not shown"
    else:
        yield f"▏ answered HTTP {exchange.status}{took}"
        yield from (f"{name}: {value}" for name, value in exchange.response_headers.items())
        yield ""
        yield exchange.response_body or "(nothing)"


_UNDER_WAY: Final = ("◐", "$text-warning")
_MARKS: Final[Mapping[SignInState, tuple[str, str]]] = {
    SignInState.AGREEING: ("?", "$text-warning"),
    SignInState.DONE: ("●", "$text-success"),
    SignInState.FAILED: ("✖", "$text-error"),
    SignInState.DECLINED: ("◌", "$foreground-muted"),
    SignInState.CANCELLED: ("◌", "$foreground-muted"),
}
_KEYS: Final[Mapping[SignInState, str]] = {
    SignInState.AGREEING: "l steps · x cancel",
    SignInState.VISITING: "c copy · o open · v paste · x cancel · esc leave (it continues)",
    SignInState.DONE: "enter opens a step · esc back",
    SignInState.FAILED: "r try again · enter opens a step · esc back",
    SignInState.DECLINED: "r try again · esc back",
    SignInState.CANCELLED: "r try again · esc back",
}
_ONLY_IN: Final[Mapping[str, SignInState]] = {
    "agree": SignInState.AGREEING,
    "decline": SignInState.AGREEING,
    "park": SignInState.AGREEING,
    "page": SignInState.AGREEING,
    "edit": SignInState.AGREEING,
    "steps": SignInState.AGREEING,
    "copy_link": SignInState.VISITING,
    "copy_ssh": SignInState.VISITING,
    "open_again": SignInState.VISITING,
    "paste": SignInState.VISITING,
}


def mark_of(state: SignInState) -> tuple[str, str]:
    return _MARKS.get(state, _UNDER_WAY)


def keys_in(state: SignInState) -> str:
    """The keys that matter now, for the frame."""
    return _KEYS.get(state, "enter opens a step · x cancel · esc leave (it continues)")


def acts_in(action: str, state: SignInState) -> bool:
    """True if this action does something in this state."""
    if action == "cancel":
        return not state.ended
    if action == "again":
        return state.ended and state is not SignInState.DONE
    return _ONLY_IN.get(action, state) is state
