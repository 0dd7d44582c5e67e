"""The cases of a verification: exchanges of a recording, and saved calls with what they expect. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, NamedTuple

from mcphost.config import ServerConfig
from mcphost.config.calls import ExpectedResult, LoadedCalls, SavedCall
from mcphost.errors import McphostError, ServerError
from mcphost.host.recordings.recorded_tasks import with_tasks
from mcphost.host.recordings.recording import LISTED, RecordedExchange, RecordedSession, Recording, walks_in
from mcphost.host.verification.answers import (
    AnswerDifferences,
    AnswerRules,
    compare_answers,
    without_envelope,
)
from mcphost.json_values import as_dict, as_text, dicts_in
from mcphost.protocol.display import duration_text, show_line, show_name
from mcphost.protocol.lifecycle.capabilities import modes_of
from mcphost.redaction import Mask

REQUESTS: Final = (
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "skills/get",
    "resources/directory/read",
)
"""The methods that are cases, beside those that list."""

TEXT: Final = 1_000_000
"""Characters of an answer that a pattern of a saved call sees."""

CaseState = Literal["passed", "failed", "skipped", "error"]


Pages = tuple[tuple[RecordedExchange, Sequence[Mapping[str, Any]]], ...]
"""The pages of a list, each with its items."""


class CaseCall(NamedTuple):
    """A tool call that a case makes; ``arguments`` show references as in the file."""

    tool: str
    arguments: Mapping[str, Any]


class RecordedCase(NamedTuple):
    """An exchange of a recording; of a list, the last page of a walk through it."""

    group: str
    """The file."""
    name: str
    server: str
    recorded: RecordedSession
    number: int
    """The place of that session in the recording."""
    exchange: RecordedExchange
    pages: Pages = ()
    """Of a list: its pages and their items."""
    again: tuple[Pages, ...] = ()
    """The pages of later walks through the list that brought the same."""

    @property
    def session(self) -> tuple[str, int]:
        """Equal for the cases of one connection."""
        return self.server, self.number

    @property
    def line(self) -> int:
        return self.exchange.answer_line or self.exchange.line

    @property
    def uses(self) -> CaseCall | None:
        if self.exchange.method != "tools/call" or self.skipped:
            return None
        params = self.exchange.params
        return CaseCall(as_text(params.get("name")), as_dict(params.get("arguments")))

    @property
    def items(self) -> list[Mapping[str, Any]]:
        return [item for _, items in self.pages for item in items]

    @property
    def skipped(self) -> str:
        """Why it cannot be tried; empty if it can."""
        from mcphost.host.history.past_call import masked_paths  # late: only recordings need it

        exchange, params = self.exchange, self.exchange.params
        if exchange.method in LISTED:
            return ""
        if exchange.result is None and exchange.error is None:
            return "the recording holds no answer"
        if masked := masked_paths(without_request_envelope(params)):
            return f"a secret was taken out of its {show_line(masked[0], 80)}"
        if "cursor" in params:
            return "it asks for a page by a cursor of its session"
        if exchange.method == "tools/call" and not as_text(params.get("name")):
            return "it names no tool"
        return ""


class SavedCase(NamedTuple):
    """A saved call that is a test."""

    group: str
    name: str
    server: str
    call: SavedCall
    line: int = 0

    @property
    def session(self) -> tuple[str, int]:
        return self.group, 0

    @property
    def uses(self) -> CaseCall | None:
        return None if self.call.tool is None else CaseCall(self.call.tool, self.call.shown)

    @property
    def skipped(self) -> str:
        none = self.call.expect is None and self.call.max_seconds is None
        return "it has neither expect nor max_seconds" if none else ""


VerificationCase = RecordedCase | SavedCase


class LiveAnswer(NamedTuple):
    """The answer of a live server: one of ``result``, ``items`` of a list, and ``error``."""

    result: Mapping[str, Any] | None = None
    items: Sequence[Mapping[str, Any]] | None = None
    error: McphostError | None = None
    seconds: float | None = None
    problems: tuple[str, ...] = ()
    """Sentences about the server's questions."""


class CaseReport(NamedTuple):
    """The end of a case. ``words`` are sentences, safe to show but not masked."""

    case: VerificationCase
    state: CaseState
    words: tuple[str, ...] = ()
    found: AnswerDifferences = AnswerDifferences()
    answer: LiveAnswer = LiveAnswer()


def without_request_envelope(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a request without what belonged to that one time."""
    return {name: value for name, value in params.items() if name not in _OF_ONE_TIME}


_OF_ONE_TIME: Final = ("_meta", "inputResponses", "requestState", "task")


def recorded_cases(recording: Recording, group: str) -> list[RecordedCase]:
    """The cases of a recording, in its order; walks through a list that bring the same again are one."""
    several = len({session.server for session in recording.sessions}) > 1
    found: list[RecordedCase] = []
    lists: dict[tuple[str, str], int] = {}
    """The newest case of each list."""
    for number, session in enumerate(recording.sessions):
        for exchange, pages in _exchanges(session):
            name = _name(exchange, f"{session.server}: " if several else "")
            name = f"{len(found) + 1} {name}"
            case = RecordedCase(group, name, session.server, session, number, exchange, pages)
            newest = lists.get((session.server, exchange.method))
            if newest is not None and found[newest].items == case.items:
                found[newest] = found[newest]._replace(again=(*found[newest].again, pages))
                continue
            if exchange.method in LISTED:
                lists[session.server, exchange.method] = len(found)
            found.append(case)
    return found


def _exchanges(recorded: RecordedSession) -> Iterator[tuple[RecordedExchange, Pages]]:
    session, tasks = with_tasks(recorded)
    walks: dict[int, Pages] = {}
    for method in LISTED:
        places = [at for at, each in enumerate(session.exchanges) if each.method == method and each.result is not None]
        for walk in walks_in(session.exchanges, method):
            last = bisect_right(places, walk.place)
            pages = [session.exchanges[place] for place in places[last - len(walk.pages) : last]]
            walks[walk.place] = tuple(zip(pages, walk.pages, strict=True))
    for place, exchange in enumerate(session.exchanges):
        if place in tasks:
            yield exchange._replace(answer_line=0), ()  # the line of its answer has the task
        elif exchange.method in REQUESTS or place in walks:
            yield exchange, walks.get(place, ())


def as_recorded(server: ServerConfig, session: RecordedSession) -> ServerConfig:
    """The entry, opened in the recorded era if it leaves that open, and offered what the client declared then."""
    if not session.revision:
        return server
    offered, declared = server.capabilities, as_dict(session.client.get("capabilities"))
    flags = {name: getattr(offered, name) and name in declared for name in ("roots", "sampling")}
    modes = tuple(mode for mode in offered.elicitation if mode in modes_of(declared))
    update: dict[str, Any] = {"capabilities": offered.model_copy(update={"elicitation": modes, **flags})}
    if server.protocol == "auto":
        update["protocol"] = "modern" if session.modern else "legacy"
    return server.model_copy(update=update)


def _name(exchange: RecordedExchange, server: str) -> str:
    params = exchange.params
    about = params.get("name") or params.get("uri") or as_dict(params.get("ref")).get("name")
    return show_line(f"{server}{exchange.method} {as_text(about)}".strip(), 120)


def saved_cases(calls: LoadedCalls, group: str) -> list[SavedCase]:
    """All saved calls of a file; those that expect nothing are skipped."""
    return [SavedCase(group, call.name, call.server, call) for call in calls.calls]


def chosen(cases: Iterable[VerificationCase], pattern: str) -> list[VerificationCase]:
    """The cases whose name holds the pattern, in upper or lower case; ``*`` and ``?`` match."""
    wanted = f"*{pattern.lower()}*"
    return [case for case in cases if fnmatchcase(case.name.lower(), wanted)]


# Judging.


def judged(case: VerificationCase, answer: LiveAnswer, rules: AnswerRules, mask: Mask = str) -> CaseReport:
    """Compare the answer with the expected one. What ``mask`` hides is in no sentence."""
    if isinstance(case, SavedCase):
        words, found = _judge_saved(case.call, answer, mask)
    else:
        words, found = _judge_recorded(case, answer, rules)
    found = found.masked(mask)  # before any sentence is made of it, which may cut a secret in two
    words = (*answer.problems, *words, *(each.words for each in found.differences))
    if found.more:
        words = (*words, f"and {found.more} more differences")
    return CaseReport(case, "failed" if words else "passed", words, found, answer)


def _judge_recorded(
    case: RecordedCase, answer: LiveAnswer, rules: AnswerRules
) -> tuple[tuple[str, ...], AnswerDifferences]:
    expected = case.exchange
    if answer.items is not None:
        key = LISTED[expected.method]
        before, after = _by_name(case.items, answer.items)
        return (), compare_answers(before, after, rules, (key,))
    code = as_dict(expected.error).get("code")
    if isinstance(answer.error, ServerError):
        if expected.error is None:
            return (f"the server answered with an error: {show_line(str(answer.error))}",), AnswerDifferences()
        if code != answer.error.code:
            said = show_line(answer.error.message)
            return (
                f"error code: expected {show_name(code, 40)}, got {answer.error.code} ({said})",
            ), AnswerDifferences()
        return (), AnswerDifferences()
    if answer.error is not None:
        return (show_line(str(answer.error), 400),), AnswerDifferences()
    if expected.error is not None:
        said = show_line(as_text(expected.error.get("message")))
        return (f"expected the error {show_name(code, 40)} ({said}), got a result",), AnswerDifferences()
    result = without_envelope(answer.result or {})
    return (), compare_answers(without_envelope(expected.result or {}), result, rules)


def _by_name(expected: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Items by their names, since their order says nothing; as lists where names are missing or not unique."""
    both = []
    for items in (expected, got):
        named = {str(name): item for item in items if (name := item_name(item))}
        if len(named) < len(items):
            return list(expected), list(got)
        both.append(named)
    return both[0], both[1]


def item_name(item: Mapping[str, Any]) -> str:
    """The name of a tool or prompt, the URI of a resource, or the template."""
    return as_text(item.get("uri") or item.get("uriTemplate") or item.get("name"))


def _judge_saved(call: SavedCall, answer: LiveAnswer, mask: Mask) -> tuple[tuple[str, ...], AnswerDifferences]:
    expect = call.expect or ExpectedResult()
    if answer.error is not None and not isinstance(answer.error, ServerError):
        return (show_line(str(answer.error), 400),), AnswerDifferences()
    words, found = list[str](), AnswerDifferences()
    failed = answer.error is not None or as_dict(answer.result).get("isError") is True
    text = str(answer.error) if answer.error is not None else "\n".join(texts_in_result(answer.result or {}))[:TEXT]
    wanted = expect.is_error if expect != ExpectedResult() else False
    if wanted is not None and failed is not wanted:
        said = f"; it says: {show_line(mask(text))}" if failed else ""
        words.append(f"is_error: expected {str(wanted).lower()}, got {str(failed).lower()}{said}")
    elif wanted is None and answer.error is not None:
        words.append(f"the server answered with an error: {show_line(str(answer.error))}")
    if expect.text_matches is not None and re.search(expect.text_matches, text) is None:
        words.append(f"text_matches: {show_name(expect.text_matches)} matches nothing in {show_name(mask(text))}")
    if expect.structured is not None:
        got = as_dict(answer.result).get("structuredContent")
        if got is None:
            words.append("structured: the answer has no structuredContent")
        else:
            found = compare_answers(expect.structured, got, AnswerRules(partial=True), ("structured",))
    if call.max_seconds is not None and answer.seconds is not None and answer.seconds > call.max_seconds:
        words.append(f"max_seconds: took {duration_text(answer.seconds)}, at most {duration_text(call.max_seconds)}")
    return tuple(words), found


def texts_in_result(result: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a tool's result, of a resource's contents or of a prompt's messages."""
    messages = [as_dict(each.get("content")) for each in dicts_in(result.get("messages"))]
    for block in (*dicts_in(result.get("content")), *dicts_in(result.get("contents")), *messages):
        for part in (block, as_dict(block.get("resource"))):
            if isinstance(part.get("text"), str):
                yield part["text"]
