"""The differences between two sides, as a value, as JSON and as rows for a table. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcphost.host.bench.statistics import percentile
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import SurfaceFinding, compare_surfaces
from mcphost.host.comparison.observation import CallObservation, Definitions, Exchange, SideObservation
from mcphost.host.comparison.severity import ChangeSeverity
from mcphost.host.comparison.surface import ERA_BOUND, Surface, surface
from mcphost.host.consent.definition_diff import Difference, differences
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, size_text
from mcphost.protocol.lifecycle.revisions import find_revision
from mcphost.protocol.models.base import ENVELOPE

ERA_BOUND_MEMBERS: Final = frozenset({"execution"})
"""Members of a tool that only one era has."""

NOTHING: Final = "-"

PERCENTILES: Final = (50, 95, 100)


FACTS: Final = frozenset({"server-name", "server-version", "revision", "identity"})
"""Rules whose findings are facts of a side, and no difference between the sides."""


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """The comparison of the first answers.

    ``varying`` are the fields in which one side's answers to the same call differ among themselves, which says nothing
    about the sides.
    """

    changed: tuple[Difference, ...]
    varying: tuple[str, ...]
    failed: bool = False
    """True if a call failed on either side; then there are no answers to compare."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the report. ``heading``: a title above others; ``differs``: it counts as a difference.

    ``severity`` is that of a finding, whose sentence the ``label`` is.
    """

    label: str
    first: str = ""
    second: str = ""
    differs: bool = False
    heading: bool = False
    severity: ChangeSeverity | None = None

    @property
    def mark(self) -> str:
        """The severity, or ≠ for another difference."""
        return self.severity.value if self.severity else "≠" if self.differs else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides as they were observed, and what differs between them."""

    first: SideObservation
    second: SideObservation
    findings: tuple[SurfaceFinding, ...]
    """The changes from the first side to the second, without `FACTS`."""
    answers: AnswerComparison | None
    """None without calls."""

    @property
    def complete(self) -> bool:
        """True if both sides were open."""
        return not (self.first.failure or self.second.failure)

    @property
    def same(self) -> bool:
        """True if no call failed and nothing that matters differs; revisions, times and bytes do not count."""
        answers = self.answers
        return self.complete and not self.findings and not (answers and (answers.changed or answers.failed))


def compare_sides(first: SideObservation, second: SideObservation) -> Comparison:
    """Compare what was observed of two sides."""
    if first.failure or second.failure:
        return Comparison(first, second, (), None)
    found = compare_surfaces(surface_of_side(first), surface_of_side(second))
    return Comparison(
        first,
        second,
        tuple(each for each in found if each.rule not in FACTS),
        _answers(first.calls, second.calls) if first.calls and second.calls else None,
    )


def surface_of_side(seen: SideObservation) -> Surface:
    """The surface of a side that was open."""
    return surface(
        seen.side.label,
        capabilities=seen.capabilities,
        instructions=seen.instructions,
        server_info=seen.server_info or {},
        offered={kind: seen.offered.get(kind, {}).values() for kind in CatalogKind},
        identity=seen.identity,
        revision=seen.revision,
    )


def _is_modern(seen: SideObservation) -> bool:
    revision = find_revision(seen.revision)
    return revision is not None and revision.modern


def _capabilities(declared: Mapping[str, Any], ignored: Container[str]) -> dict[str, Any]:
    """The capabilities to compare; no extension is the same as an empty list of them."""
    return {name: each for name, each in _without(declared, ignored).items() if each or name != "extensions"}


def _without(value: Any, names: Container[str]) -> Any:
    """An object without these members, at any depth."""
    if not isinstance(value, Mapping):
        return value
    return {name: _without(each, names) for name, each in value.items() if name not in names}


def _answers(first: Sequence[CallObservation], second: Sequence[CallObservation]) -> AnswerComparison:
    varying = {each.field for calls in (first, second) for call in calls[1:] for each in _between(calls[0], call)}
    changed = tuple(each for each in _between(first[0], second[0]) if each.field not in varying)
    failed = any(call.error is not None for call in (*first, *second))
    return AnswerComparison(changed, tuple(sorted(varying)), failed)


def _between(one: CallObservation, other: CallObservation) -> list[Difference]:
    return differences(answer_of(one), answer_of(other))


def answer_of(call: CallObservation) -> dict[str, Any]:
    """The answer without its envelope; an error by its sentence."""
    if call.error is not None:
        return {"error": str(call.error)}
    return {name: value for name, value in (call.result or {}).items() if name not in ENVELOPE}


# As JSON.


def as_object(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison for ``--json``."""
    first, second = comparison.first, comparison.second
    labels = first.side.label, second.side.label
    answers, across = comparison.answers, _is_modern(first) != _is_modern(second)
    capabilities = [_capabilities(seen.capabilities, ERA_BOUND if across else ()) for seen in (first, second)]
    texts = [{"instructions": seen.instructions} for seen in (first, second)]
    compared = comparison.complete
    return {
        "same": comparison.same,
        "sides": [_side_object(first), _side_object(second)],
        "findings": [each.as_object() for each in comparison.findings],
        "capabilities": [_difference_object(each, labels) for each in differences(*capabilities) if compared],
        "instructions": [_difference_object(each, labels) for each in differences(*texts) if compared],
        **{_member(kind): _kind_object(kind, comparison, across) for kind in CatalogKind if compared},
        "answers": None
        if answers is None
        else {
            "differ": [_difference_object(each, labels) for each in answers.changed],
            "varying": list(answers.varying),
        },
    }


def _member(kind: CatalogKind) -> str:
    return "resourceTemplates" if kind is CatalogKind.TEMPLATES else kind.value


def _side_object(seen: SideObservation) -> dict[str, Any]:
    return {
        "label": seen.side.label,
        "server": seen.side.server,
        "runs": seen.identity,
        "failure": seen.failure or None,
        "protocolVersion": seen.revision or None,
        "foundOut": seen.evidence or None,
        "serverInfo": seen.server_info,
        "capabilities": seen.capabilities,
        "openingSeconds": round(seen.seconds, 6),
        "opening": _exchange_object(seen.opening),
        "calls": [_call_object(call) for call in seen.calls],
        "seconds": {f"p{percent}": round(_percentile_of(seen, percent), 6) for percent in PERCENTILES}
        if seen.calls
        else None,
    }


def _call_object(call: CallObservation) -> dict[str, Any]:
    error = None if call.error is None else str(call.error)
    return {
        "tool": call.tool,
        "result": call.result,
        "error": error,
        "seconds": round(call.seconds, 6),
        **_exchange_object(call.exchange),
    }


def _exchange_object(passed: Exchange) -> dict[str, Any]:
    return {
        "messages": passed.messages,
        "bytesSent": passed.sent,
        "bytesReceived": passed.received,
        "questions": dict(passed.questions),
    }


def _kind_object(kind: CatalogKind, comparison: Comparison, across: bool) -> dict[str, Any]:
    sides = comparison.first, comparison.second
    labels = sides[0].side.label, sides[1].side.label
    ignored = ERA_BOUND_MEMBERS if across else frozenset[str]()
    first, second = (_without_members(seen.offered.get(kind, {}), ignored) for seen in sides)
    compared = {name: differences(first[name], second[name]) for name in first if name in second}
    changed = {name: found for name, found in compared.items() if found}
    return {
        "only": {
            labels[0]: [name for name in first if name not in second],
            labels[1]: [name for name in second if name not in first],
        },
        "differ": {name: [_difference_object(each, labels) for each in found] for name, found in changed.items()},
        "same": len(compared) - len(changed),
    }


def _without_members(definitions: Definitions, ignored: Container[str]) -> dict[str, dict[str, Any]]:
    return {
        name: {member: value for member, value in definition.items() if member not in ignored}
        for name, definition in definitions.items()
    }


def _difference_object(each: Difference, labels: tuple[str, str]) -> dict[str, Any]:
    return {"field": each.field, labels[0]: each.before, labels[1]: each.after}


# As rows.


def rows_of(comparison: Comparison) -> Iterator[Row]:
    """The report as rows: label, first side, second side. Texts are as received, not safe to show."""
    first, second = comparison.first, comparison.second
    yield Row("Session", heading=True)
    if first.identity != second.identity:
        yield Row("runs", first.identity, second.identity)
    yield Row("revision", first.revision or NOTHING, second.revision or NOTHING)
    yield Row("server", _identity(first), _identity(second))
    if first.evidence or second.evidence:
        yield Row("server/discover", first.evidence or "not asked", second.evidence or "not asked")
    if not comparison.complete:
        yield Row("not open", first.failure or NOTHING, second.failure or NOTHING, differs=True)
        return
    yield Row("opened in", duration_text(first.seconds), duration_text(second.seconds))
    yield from _exchange_rows("opened with", first.opening, second.opening)
    of_server = [each for each in comparison.findings if each.kind is None]
    yield from (_finding_row(each) for each in of_server if each.rule == "words")
    capabilities = [each for each in of_server if each.rule != "words"]
    yield Row("Capabilities" if capabilities else "Capabilities: the same", heading=True)
    yield from map(_finding_row, capabilities)
    for kind in CatalogKind:
        yield from _kind_rows(kind, comparison)
    if comparison.answers is not None:
        yield from _answer_rows(comparison.answers, first, second)


def _identity(seen: SideObservation) -> str:
    info = seen.server_info or {}
    return " ".join(str(info[name]) for name in ("name", "version") if info.get(name)) or NOTHING


def _kind_rows(kind: CatalogKind, comparison: Comparison) -> Iterator[Row]:
    counts = [len(seen.offered.get(kind, {})) for seen in (comparison.first, comparison.second)]
    if not any(counts):
        return
    found = [each for each in comparison.findings if each.kind is kind]
    name = kind.value.capitalize()
    yield Row(name if found else f"{name}: the same", str(counts[0]), str(counts[1]), heading=True)
    yield from map(_finding_row, found)


def _finding_row(found: SurfaceFinding) -> Row:
    values = ("yes" if isinstance(each, Mapping) and not found.field else each for each in (found.before, found.after))
    return Row(found.words, *_pair(map(_value_text, values)), differs=True, severity=found.severity)


def _value_text(value: Any) -> str:
    return NOTHING if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answer_rows(answers: AnswerComparison, first: SideObservation, second: SideObservation) -> Iterator[Row]:
    counts = str(len(first.calls)), str(len(second.calls))
    alike = not answers.changed and not answers.failed
    yield Row("Calls: the same answers" if alike else "Calls", *counts, heading=True)
    yield Row("tool", first.calls[0].tool, second.calls[0].tool)
    if answers.failed:
        yield Row("failed", _failure(first), _failure(second), differs=True)
    yield from _difference_rows(each for each in answers.changed if each.field != "error")
    if answers.varying:
        varying = ", ".join(answers.varying)
        yield Row("varies by call", varying, varying)
    for percent in PERCENTILES:
        label = "slowest" if percent == 100 else "median" if percent == 50 else f"{percent} % within"
        yield Row(label, *_pair(duration_text(_percentile_of(seen, percent)) for seen in (first, second)))
    yield from _exchange_rows("a call with", first.calls[0].exchange, second.calls[0].exchange)
    yield Row("questions asked", _questions(first), _questions(second))


def _failure(seen: SideObservation) -> str:
    """Why the first failed call of a side failed, and how many did."""
    errors = [call.error for call in seen.calls if call.error is not None]
    if not errors:
        return NOTHING
    return f"{errors[0]}" if len(seen.calls) == 1 else f"{len(errors)} of {len(seen.calls)}: {errors[0]}"


def _percentile_of(seen: SideObservation, percent: int) -> float:
    return percentile([call.seconds for call in seen.calls], percent)


def _questions(seen: SideObservation) -> str:
    found = Counter[str]()
    for call in seen.calls:
        found.update(call.exchange.questions)
    return ", ".join(f"{count} × {method}" for method, count in found.items()) or "none"


def _exchange_rows(label: str, first: Exchange, second: Exchange) -> Iterator[Row]:
    messages = (f"{each.messages} messages" for each in (first, second))
    yield Row(label, *_pair(messages))
    sizes = (f"{size_text(each.sent)} out, {size_text(each.received)} in" for each in (first, second))
    yield Row("", *_pair(sizes))


def _pair(texts: Iterable[str]) -> tuple[str, str]:
    first, second = texts
    return first, second


def _difference_rows(found: Iterable[Difference], prefix: str = "") -> Iterator[Row]:
    for each in found:
        texts = (NOTHING if text is None else text for text in (each.before, each.after))
        yield Row(f"{prefix}{each.field}", *_pair(texts), differs=True)
