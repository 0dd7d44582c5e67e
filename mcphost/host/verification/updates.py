"""New answers in place of those that differ: whole lines of a recording, and expectations of saved calls."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcphost.config.calls import CallsFile, ExpectedResult
from mcphost.config.files import read_regular
from mcphost.config.state import file_version, replace_file
from mcphost.errors import ConfigError, NotDone, ServerError
from mcphost.host.recordings.recording import LISTED
from mcphost.host.traffic.file import IMPORT_BYTES
from mcphost.host.verification.answers import ABSENT, aligned, containers, masks, without_envelope
from mcphost.host.verification.cases import CaseReport, Pages, RecordedCase, SavedCase, item_name
from mcphost.json_values import as_dict, as_list
from mcphost.protocol.models.base import ENVELOPE
from mcphost.redaction import MASK, Mask, fits_masked, masked_value, redacted

Change = tuple[str | int | None, str, Any]
"""The id of a request, the member ``result`` or ``error``, and its new value."""


def why_not(report: CaseReport) -> str:
    """Why a case that failed cannot be updated, as a clause; empty if it can."""
    answer = report.answer
    answered = answer.result is not None or answer.items is not None or isinstance(answer.error, ServerError)
    if not answered:
        return "the server did not answer"
    if isinstance(report.case, SavedCase):
        return "" if _is_rewritable(report, report.case.call.expect) else "its expectation is written by hand"
    if answer.problems:
        return "the server asks other questions; record it again"
    if not report.case.exchange.answer_line:
        return "its answer has no line of its own; record it again"
    return ""


def _is_rewritable(report: CaseReport, expect: ExpectedResult | None) -> bool:
    if expect is None or report.answer.error is not None:
        return False
    known = {each.words for each in report.found.differences}
    others = [words for words in report.words if words not in known]
    return all(words.startswith("is_error:") and expect.is_error is not None for words in others)


def changes_of(reports: Iterable[CaseReport]) -> dict[int, list[Change]]:
    """The changes of a recording, by line. Raises NotDone where a masked value has no place in the new answer."""
    found: dict[int, list[Change]] = {}
    for report in reports:
        case, answer = report.case, report.answer
        assert isinstance(case, RecordedCase)
        if answer.items is not None:
            for pages in (case.pages, *case.again):
                _add_pages(found, case, pages, answer.items)
            continue
        exchange, error = case.exchange, answer.error
        if isinstance(error, ServerError):
            value: dict[str, Any] = {"code": error.code, "message": error.message}
            new = "error", value if error.data is None else {**value, "data": error.data}
        else:
            kept = {name: each for name, each in as_dict(exchange.result).items() if name in ENVELOPE}
            result = without_envelope(answer.result or {})
            new = "result", {**kept, **_masked(without_envelope(exchange.result or {}), result, case.name)}
        found.setdefault(exchange.answer_line, []).append((exchange.id, *new))
    return found


def _add_pages(
    found: dict[int, list[Change]], case: RecordedCase, pages: Pages, items: Sequence[Mapping[str, Any]]
) -> None:
    """Keep each item on its page; new ones are on the last."""
    key, left = LISTED[case.exchange.method], {item_name(item): item for item in items}
    for number, (exchange, before) in enumerate(pages, 1):
        kept = [(item, new) for item in before if (new := left.pop(item_name(item), None)) is not None]
        page = [_masked(item, new, case.name) for item, new in kept]
        if number == len(pages):
            page += left.values()
        if page != list(before):
            found.setdefault(exchange.answer_line, []).append(
                (exchange.id, "result", {**as_dict(exchange.result), key: page})
            )


def updated(content: bytes, changes: Mapping[int, Sequence[Change]], mask: Mask) -> bytes:
    """The file with these answers; other lines stay as they are. Raises NotDone."""
    lines = content.split(b"\n")
    for number, each in changes.items():
        try:
            fields = json.loads(lines[number - 1])
            message = json.loads(fields["text"])
            if fields.get("cut"):
                raise ValueError("it was cut")
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise NotDone(f"line {number} holds no answer that can be replaced ({error})") from None
        for request_id, member, value in each:
            for response in as_list(message) or [message]:
                if isinstance(response, dict) and response.get("id") == request_id and "method" not in response:
                    response.pop("result", None)
                    response.pop("error", None)
                    response[member] = value
        text = redacted(json.dumps(message, ensure_ascii=False, separators=(",", ":")), mask)
        fields |= {"text": text, "size": len(text.encode("utf-8", "replace"))}
        if isinstance(message, dict):
            fields |= _facts_of(message)
        lines[number - 1] = json.dumps(fields).encode("ascii")
    return b"\n".join(lines)


def _facts_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a line that follow from its text."""
    if "error" in message:
        return {"kind": "error", "status": f"error {as_dict(message['error']).get('code')}"}
    return {"kind": "response", "status": "failed" if as_dict(message["result"]).get("isError") is True else "ok"}


def update_recording(path: Path, reports: Sequence[CaseReport], mask: Mask, version: object) -> None:
    """Write the new answers of a recording that is still of this ``version``. Blocks. Raises ConfigError, NotDone."""
    if path.is_symlink():  # a project could have any file of the user changed
        raise ConfigError("is a link, which mcphost does not follow to write; name the file itself", path=path)
    if file_version(path) != version:
        raise ConfigError("has changed since it was read; run the test again", path=path)
    content = read_regular(path, IMPORT_BYTES)
    replace_file(path, updated(content, changes_of(reports), mask), mode=stat.S_IMODE(path.stat().st_mode))


def update_call(file: CallsFile, report: CaseReport, mask: Mask) -> None:
    """Write what the saved call got into its expectation. Blocks. Raises ConfigError, NotDone."""
    case, result = report.case, as_dict(report.answer.result)
    assert isinstance(case, SavedCase)
    expect = case.call.expect
    if expect is None:
        return
    new = expect.model_copy()
    if expect.is_error is not None:
        new = new.model_copy(update={"is_error": result.get("isError") is True})
    if expect.structured is not None:
        wanted = _wanted(expect.structured, as_dict(result.get("structuredContent")))
        if masked_value(wanted, lambda text: redacted(text, mask)) != wanted:
            raise NotDone(f"{case.name}: the new answer holds a secret, which no file gets")
        new = new.model_copy(update={"structured": wanted})
    file.save_expectation(case.call.name, new)


def _wanted(expected: Mapping[str, Any], got: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are expected, with their new values, as far as TOML has them."""
    found: dict[str, Any] = {}
    for name, value in expected.items():
        new = got.get(name)
        known = _wanted(value, new) if isinstance(value, Mapping) and isinstance(new, Mapping) else _in_toml(new)
        if known is not None:
            found[name] = known
    return found


def _in_toml(value: Any) -> Any:
    """A value without members that are null; None for null and for a list that holds it."""
    if isinstance(value, Mapping):
        return {name: known for name, each in value.items() if (known := _in_toml(each)) is not None}
    if isinstance(value, list):
        items = list(map(_in_toml, value))
        return None if None in items else items
    return value


def _masked(expected: Mapping[str, Any], got: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """``got`` with the masks of ``expected``. Raises NotDone where one has no place."""
    made: Mapping[str, Any] = _with_masks(expected, got)
    before, after = (json.dumps(value, ensure_ascii=False).count(MASK) for value in (expected, made))
    if after < before:
        raise NotDone(f"{name}: a masked value ({MASK}) has no place in the new answer; record it again")
    return made


def _with_masks(expected: Any, got: Any) -> Any:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return {name: _with_masks(expected.get(name, ABSENT), value) for name, value in got.items()}
    if isinstance(expected, list) and isinstance(got, list):
        return [_with_masks(one, other) for _, (one, other) in aligned(expected, got) if other is not ABSENT]
    if not masks(expected):
        return got
    if isinstance(got, str) and (both := containers(expected, got)) is not None:
        return json.dumps(_with_masks(*both), ensure_ascii=False)
    return (
        expected if fits_masked(expected, got if isinstance(got, str) else json.dumps(got, ensure_ascii=False)) else got
    )
