"""Judges what was seen by every row: passed, broken, or skipped with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, Literal, NamedTuple

from mcphost.host.server_rules import (
    answer_rules,
    call_rules,
    http_rules,
    listing_rules,
    message_rules,
    opening_rules,
    skill_rules,
)
from mcphost.host.server_rules.outcomes import Rule
from mcphost.host.server_rules.requirements import ServerRequirement, requirements
from mcphost.host.server_rules.sighting import Sighting, Unjudged
from mcphost.protocol.display import show_line

RULES: Final[Mapping[str, Rule]] = {
    **message_rules.RULES,
    **opening_rules.RULES,
    **listing_rules.RULES,
    **answer_rules.RULES,
    **http_rules.RULES,
    **call_rules.RULES,
    **skill_rules.RULES,
}
"""The rows that are judged, each by its function."""

CITED: Final = 3
"""Places that one finding names."""

RuleOutcome = Literal["passed", "failed", "warning", "skipped"]


class RuleFinding(NamedTuple):
    """One row, judged. ``seen`` is what breaks it, safe to show; ``reason`` why it was skipped."""

    row: ServerRequirement
    outcome: RuleOutcome
    seen: str = ""
    reason: str = ""


def judge(seen: Sighting) -> Iterator[RuleFinding]:
    """Every row of the table, in its order."""
    return (judge_row(row, seen) for row in requirements().values())


def judge_row(row: ServerRequirement, seen: Sighting) -> RuleFinding:
    """A row that the text does not state itself, or only recommends, gives a warning."""
    rule = RULES.get(row.id)
    reason = _inapplicable(row, seen) or ("" if rule else "not judged by mcphost")
    if rule is None or reason:
        return RuleFinding(row, "skipped", reason=reason)
    try:
        broken = list(islice(dict.fromkeys(rule(seen)), CITED + 1))
    except Unjudged as unjudged:
        return RuleFinding(row, "skipped", reason=show_line(str(unjudged)))
    if not broken:
        return RuleFinding(row, "passed")
    words = "; ".join(broken[:CITED]) + ("; and more" if len(broken) > CITED else "")
    return RuleFinding(row, "failed" if row.strict else "warning", show_line(words, 400))


def _inapplicable(row: ServerRequirement, seen: Sighting) -> str:
    if not row.holds_in(seen.revision.version):
        return "of another revision"
    if row.transport not in ("any", seen.transport):
        return f"about {row.transport}"
    if row.kind == "hidden":
        return "not seen from outside"
    if row.level == "MAY":
        return "a permission"
    if row.kind == "call" and row.id in RULES and not seen.calls:
        return "needs a call; name a tool with --call"
    if row.capability.startswith("client:") or row.capability == "authorization":
        return "not judged by mcphost"
    if row.capability != "-" and not seen.offers(row.capability):
        return f"the server does not declare {row.capability}"
    return ""
