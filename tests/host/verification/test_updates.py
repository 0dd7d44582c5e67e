"""New answers in a recording or in calls.toml: only what differs is rewritten."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Values
from mcphost.config.calls import CallsFile, parse_calls
from mcphost.config.state import file_version
from mcphost.errors import ConfigError, NotDone, ServerError
from mcphost.host.recordings.reading import recording_of
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession
from mcphost.host.verification.answers import AnswerRules
from mcphost.host.verification.cases import CaseReport, LiveAnswer, judged, recorded_cases, saved_cases
from mcphost.host.verification.updates import changes_of, update_call, update_recording, updated, why_not
from mcphost.redaction import MASK
from tests.host.recordings.recorded_lines import written

INITIALIZE = RecordedExchange("initialize", result={"protocolVersion": "2025-11-25", "capabilities": {}})


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def call(result: dict[str, Any]) -> RecordedExchange:
    return RecordedExchange("tools/call", {"name": "log"}, result=result, seconds=0.0)


def recorded(*exchanges: RecordedExchange) -> bytes:
    return written(RecordedSession("git", exchanges=(INITIALIZE._replace(seconds=0.0), *exchanges)))


def reports_on(content: bytes, *answers: LiveAnswer) -> list[CaseReport]:
    cases = recorded_cases(recording_of(content, "x"), "x")
    return [judged(case, answer, AnswerRules()) for case, answer in zip(cases, answers, strict=True)]


def results(content: bytes) -> list[Any]:
    return [case.exchange.result or case.exchange.error for case in recorded_cases(recording_of(content, "x"), "x")]


def test_only_the_lines_of_changed_answers_are_rewritten() -> None:
    before = recorded(call(text("a")), call(text("b", _meta={"x": 1})))
    _, report = reports_on(before, LiveAnswer(text("a")), LiveAnswer(text("c", _meta={"x": 2})))
    after = updated(before, changes_of([report]), str)
    lines = [(one, other) for one, other in zip(before.split(b"\n"), after.split(b"\n"), strict=True) if one != other]
    assert len(lines) == 1
    assert results(after) == [text("a"), text("c", _meta={"x": 1})]
    assert json.loads(lines[0][1])["size"] == len(json.loads(lines[0][1])["text"])


def test_an_error_takes_the_place_of_a_result() -> None:
    before = recorded(call(text("a")))
    reports = reports_on(before, LiveAnswer(error=ServerError(-5, "ouch", {"n": 1})))
    after = updated(before, changes_of(reports), str)
    assert results(after) == [{"code": -5, "message": "ouch", "data": {"n": 1}}]
    assert b'"status": "error -5"' in after


def test_the_items_of_a_list_stay_on_their_pages() -> None:
    first = RecordedExchange(
        "tools/list", result={"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "2"}, seconds=0
    )
    last = RecordedExchange("tools/list", {"cursor": "2"}, result={"tools": [{"name": "c"}]}, seconds=0)
    before = recorded(first, last)
    live = [{"name": "d"}, {"name": "c"}, {"name": "a", "title": "A"}]
    after = updated(before, changes_of(reports_on(before, LiveAnswer(items=live))), str)
    (session,) = recording_of(after, "x").sessions
    assert [each.result for each in session.exchanges[1:]] == [
        {"tools": [{"name": "a", "title": "A"}], "nextCursor": "2"},
        {"tools": [{"name": "c"}, {"name": "d"}]},
    ]


def test_masked_values_stay_masked() -> None:
    was = text(f'{{"key": "{MASK}", "n": 1}}', structuredContent={"key": MASK, "n": 1})
    now = text('{"key": "swordfish", "n": 2}', structuredContent={"key": "swordfish", "n": 2})
    before = recorded(call(was))
    after = updated(before, changes_of(reports_on(before, LiveAnswer(now))), str)
    assert b"swordfish" not in after
    assert results(after)[0]["structuredContent"] == {"key": MASK, "n": 2}
    with pytest.raises(NotDone, match=r"1 tools/call log: a masked value .* has no place in the new answer"):
        changes_of(reports_on(before, LiveAnswer(text("key swordfish"))))


def test_known_secrets_are_masked_in_new_answers() -> None:
    before = recorded(call(text("a")))
    changes = changes_of(reports_on(before, LiveAnswer(text('say "swordfish"'))))
    after = updated(before, changes, lambda words: words.replace("swordfish", MASK))
    assert results(after) == [text(f'say "{MASK}"')]


def test_a_file_that_changed_or_is_a_link_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.mcp.jsonl"
    file.write_bytes(recorded(call(text("a"))))
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    version = file_version(file)
    reports = reports_on(file.read_bytes(), LiveAnswer(text("b")))
    with pytest.raises(ConfigError, match="is a link"):
        update_recording(tmp_path / "link", reports, str, file_version(tmp_path / "link"))
    with pytest.raises(ConfigError, match="has changed since it was read; run the test again"):
        update_recording(file, reports, str, None)
    assert results(file.read_bytes()) == [text("a")]
    update_recording(file, reports, str, version)
    assert results(file.read_bytes()) == [text("b")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


CALLS = """\
# mine
[[call]]
name = "c"
server = "s"
tool = "t"
max_seconds = 2 # exact
expect = { is_error = true, structured = { n = 1, m = { o = 2 } } } # kept

[[call]]  # another
name = "d"
server = "s"
tool = "t"
"""


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (
            {"structuredContent": {"n": 3, "m": {"o": 4, "p": 5}, "q": 6}},
            "expect = { is_error = false, structured = { n = 3, m = { o = 4 } } } # kept",
        ),
        (
            {"isError": True, "structuredContent": {"n": [1, {"a": None}], "m": {"o": [None]}}},
            "expect = { is_error = true, structured = { n = [1, {}], m = { } } } # kept",
        ),
    ],
)
def test_an_expectation_gets_what_came_and_nothing_else(tmp_path: Path, answer: dict[str, Any], line: str) -> None:
    file = CallsFile(tmp_path / "calls.toml", Values({}), own=False)
    file.path.write_text(CALLS)
    case = saved_cases(file.read(), "calls.toml")[0]
    report = judged(case, LiveAnswer(answer), AnswerRules())
    assert why_not(report) == ""
    update_call(file, report, str)
    expected = CALLS.replace(CALLS.splitlines()[6], line)
    assert "".join(file.path.read_text().split()).replace(",]", "]") == "".join(expected.split())


def test_no_secret_gets_into_an_expectation(tmp_path: Path) -> None:
    file = CallsFile(tmp_path / "calls.toml", Values({}), own=False)
    file.path.write_text(CALLS)
    report = judged(
        saved_cases(file.read(), "x")[0], LiveAnswer({"structuredContent": {"n": "swordfish"}}), AnswerRules()
    )
    with pytest.raises(NotDone, match="c: the new answer holds a secret, which no file gets"):
        update_call(file, report, lambda words: words.replace("swordfish", MASK))
    assert file.path.read_text() == CALLS


def test_what_is_written_by_hand_is_not_updated() -> None:
    toml = CALLS.replace("is_error = true", 'is_error = true, text_matches = "b"')
    case = saved_cases(parse_calls(toml), "x")[0]
    report = judged(case, LiveAnswer(text("a", isError=True)), AnswerRules())
    assert why_not(report) == "its expectation is written by hand"
    gone = judged(
        recorded_cases(recording_of(recorded(call(text("a"))), "x"), "x")[0], LiveAnswer(text("b")), AnswerRules()
    )
    assert why_not(gone) == ""
    assert why_not(gone._replace(answer=gone.answer._replace(problems=("asked",)))).endswith("record it again")
    assert why_not(gone._replace(answer=LiveAnswer())) == "the server did not answer"
