"""What is known of a tool that is asked about, row by row: what its server says of it, and what you allowed before.

Knows tools and standings. Refuses to know the arguments and the answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content
from textual.widget import Widget

from mcphost.host.approvals import Difference, Kind, Standing
from mcphost.host.argument_rules import in_words
from mcphost.host.questions import ToolCallQuestion
from mcphost.protocol.display import hidden_in, show, show_line
from mcphost.protocol.types import Tool
from mcphost.tui.screens.call_rows import row


def tool_rows(question: ToolCallQuestion) -> Iterator[Widget]:
    """What its server says of it."""
    tool = question.tool
    yield row("claims", claims_text(tool))
    if tool.description:
        whole = question.standing.kind is not Kind.UNCHANGED
        text = show(tool.description, limit=4000) if whole else show_line(tool.description, 120)
        yield row("says", Content.styled(text, "italic $foreground-muted"))
    if hidden := hidden_in(tool.definition()):
        yield row("beware", f"its definition holds {hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")


def claims_text(tool: Tool) -> Content:
    """What the server claims of a tool, as a claim."""
    if not tool.claims:
        return Content.styled("nothing (so it may write, delete and reach the network)", "$foreground-muted")
    words = [Content.styled(claim, _claim_style(claim)) for claim in tool.claims]
    return Content.assemble(Content(", ").join(words), (" (claimed by the server)", "$foreground-muted"))


def _claim_style(claim: str) -> str:
    return {"destructive": "bold $text-error", "read-only": "$text-success"}.get(claim, "")


def standing_rows(standing: Standing) -> Iterator[Widget]:
    """What you allowed of it, and what is not as it was then."""
    if standing.kind is Kind.NEW or standing.since is None:
        yield row("before", "never allowed until now")
    elif standing.kind is Kind.UNCHANGED:
        lapsed = "; that was for good, but too long ago (policy.remember_days)" if standing.lapsed else ""
        yield row("before", f"definition unchanged since you allowed it on {standing.since:%-d %b %Y}{lapsed}")
    else:
        yield row("before", f"CHANGED since you allowed it on {standing.since:%-d %b %Y}:", "bold $text-error")
        yield from (row("", _difference(each)) for each in standing.differences)
    for rule in standing.rules:
        yield row("allowed", f"where {in_words(rule.when)}, {rule.lifetime.words}")


def _difference(difference: Difference) -> Content:
    lines = [Content.styled(show_line(difference.field, 80), "bold")]
    if difference.before is not None:
        lines.append(Content.styled(f"- {show(difference.before, limit=1500)}", "$text-error"))
    if difference.after is not None:
        lines.append(Content.styled(f"+ {show(difference.after, limit=1500)}", "$text-success"))
    return Content("\n").join(lines)
