"""Which screen asks a question of which kind, and how the inbox describes it.

A question that is not in the table stays in the inbox, where it can be declined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.host.consent.questions import (
    FormQuestion,
    Question,
    ResultQuestion,
    RootsQuestion,
    SamplingQuestion,
    SignInQuestion,
    SkillQuestion,
    ToolCallQuestion,
    UrlQuestion,
)
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_name
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import agent_call, origin_of

if TYPE_CHECKING:
    from mcphost.tui.kit.modal_screen import QuestionDialog


@dataclass(frozen=True, slots=True)
class QuestionKind:
    screen: Callable[[Host, OpenQuestion, Any], QuestionDialog]
    """Makes the screen; the last argument is the question."""
    words: Callable[[Any], str] = lambda question: str(question.about)
    """A description for the inbox; may hold foreign text."""
    mark: str = "?"
    """One cell before it in the inbox."""
    asks: str = ""
    """The words of the top bar after the server's name."""


def kind_of(question: Question) -> QuestionKind | None:
    """Return None for a question that has no screen."""
    return KINDS.get(type(question))


def words_of(question: Question) -> str:
    """A short description of the question; may hold foreign text."""
    kind = kind_of(question)
    return question.about if kind is None else kind.words(question)


def asks_words(question: Question) -> str:
    """The question in one line, with its server; may hold foreign text."""
    if isinstance(question, ToolCallQuestion) and question.agent is not None:
        return f"{question.agent.label[:16]} wants to run {question.server[:16]}:{question.tool.name[:24]}"
    kind = kind_of(question)
    asks = "" if kind is None or getattr(question, "review", False) else kind.asks
    return f"{question.server} {asks}" if asks else f"{question.server}: {question.about}"


# The screens are imported when they are needed, so that the first frame does not wait for them.


def _tool_call(host: Host, waiting: OpenQuestion, question: ToolCallQuestion) -> QuestionDialog:
    from mcphost.host.consent.rule_trial import earlier_calls
    from mcphost.tui.consent.tool_call import ToolCallScreen

    return ToolCallScreen(
        waiting,
        question,
        lambda: earlier_calls(question, host.history),
        lambda: host.tool_calls.read_only_tools(question),
        lambda: agent_call(host, question),
    )


def _sign_in(host: Host, waiting: OpenQuestion, question: SignInQuestion) -> QuestionDialog:
    from mcphost.tui.sign_in.screen import SignInScreen

    return SignInScreen(host.sign_ins.all[question.sign_in], waiting)


def _sign_in_words(question: SignInQuestion) -> str:
    from mcphost.tui.sign_in.plan import plan_line

    return plan_line(question.plan)


def _form(host: Host, waiting: OpenQuestion, question: FormQuestion) -> QuestionDialog:
    from mcphost.tui.elicitation.form import FormElicitationScreen

    return FormElicitationScreen(waiting, question, origin_of(host, question))


def _page(host: Host, waiting: OpenQuestion, question: UrlQuestion) -> QuestionDialog:
    from mcphost.tui.elicitation.url import UrlElicitationScreen

    return UrlElicitationScreen(waiting, question, origin_of(host, question))


def _folders(host: Host, waiting: OpenQuestion, question: RootsQuestion) -> QuestionDialog:
    from mcphost.tui.roots.screen import RootsScreen

    here = question.suggestions[-1] if question.suggestions else Path.cwd()
    return RootsScreen(host, question.server, origin_of(host, question), here, question.suggestions, waiting)


def _sampling(host: Host, waiting: OpenQuestion, question: SamplingQuestion) -> QuestionDialog:
    from mcphost.tui.sampling.screen import SamplingScreen

    return SamplingScreen(host, host.sampling.all[question.sampling], waiting)


def _result(host: Host, waiting: OpenQuestion, question: ResultQuestion) -> QuestionDialog:
    from mcphost.tui.consent.result_review import ResultScreen

    return ResultScreen(waiting, question)


def _skill(host: Host, waiting: OpenQuestion, question: SkillQuestion) -> QuestionDialog:
    from mcphost.tui.consent.skill import SkillScreen

    return SkillScreen(waiting, question)


def _with_message(question: FormQuestion | UrlQuestion) -> str:
    return f"{question.about}: {show_name(question.message)}" if question.message else question.about


KINDS: Final[Mapping[type, QuestionKind]] = {
    ToolCallQuestion: QuestionKind(_tool_call),
    SignInQuestion: QuestionKind(_sign_in, _sign_in_words, "▲"),
    FormQuestion: QuestionKind(_form, _with_message, asks="asks you to fill in a form"),
    UrlQuestion: QuestionKind(_page, _with_message, asks="asks you to open a page"),
    RootsQuestion: QuestionKind(_folders, asks="asks for its roots"),
    SamplingQuestion: QuestionKind(_sampling, asks="asks for a model's answer"),
    ResultQuestion: QuestionKind(_result),
    SkillQuestion: QuestionKind(_skill),
}
