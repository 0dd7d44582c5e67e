"""What mcphost knows of a call that is asked about: where it goes, what the server says, what you allowed before.

What is short comes first, so that it is in view; what a server wrote at length comes last.
"""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from mcphost.host.approvals import ApprovalStatus, Difference, ToolApproval
from mcphost.host.argument_rules import in_words
from mcphost.host.questions import ToolCallQuestion
from mcphost.protocol.display import hidden_in, show, show_line, show_name
from mcphost.protocol.types import Tool
from mcphost.tui.widgets.facts import Fact, fact


def call_facts(question: ToolCallQuestion) -> Iterator[Fact]:
    """Where the arguments would go, why it is asked, and what is known of the tool."""
    tool = question.tool
    if tool.label != tool.name:
        yield fact("tool", show_name(tool.name))
    yield Fact("server says", claims_text(tool))
    yield fact("history", *_history(question.standing))
    yield fact("sent to", show(question.sent_to, limit=2000))
    yield fact("rule", show_line(question.rule, 200))
    if question.note:
        yield fact("note", show(question.note), "$text-warning")
    if hidden := hidden_in(tool.definition()):
        yield fact("beware", f"its definition holds {hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")


def tool_facts(question: ToolCallQuestion) -> Iterator[Fact]:
    """What changed, what is allowed already, and the server's own description."""
    for difference in question.standing.differences:
        yield Fact("changed", _difference(difference))
    for rule in question.standing.rules:
        yield fact("allowed", f"where {in_words(rule.when)}, {rule.lifetime.words}")
    if description := question.tool.description:
        whole = question.standing.kind is not ApprovalStatus.UNCHANGED
        text = show(description, limit=4000) if whole else show_line(description, 120)
        yield Fact("description", Content.styled(text, "italic $foreground-muted"))


def claims_text(tool: Tool) -> Content:
    """What the server claims of a tool; its label says that it is a claim."""
    if not tool.claims:
        return Content.styled("nothing (so it may write, delete and reach the network)", "$foreground-muted")
    return Content(", ").join(Content.styled(claim, _claim_style(claim)) for claim in tool.claims)


def _claim_style(claim: str) -> str:
    return {"destructive": "bold $text-error", "read-only": "$text-success"}.get(claim, "")


def _history(standing: ToolApproval) -> tuple[str, str]:
    """What you allowed of it before, and the style to say it in."""
    if standing.kind is ApprovalStatus.NEW or standing.since is None:
        return "not allowed before", ""
    since = f"since you allowed it on {standing.since:%-d %b %Y}"
    if standing.kind is ApprovalStatus.CHANGED:
        return f"CHANGED {since}", "bold $text-error"
    lapsed = "; that was for good, but too long ago (policy.remember_days)" if standing.lapsed else ""
    return f"definition unchanged {since}{lapsed}", ""


def _difference(difference: Difference) -> Content:
    lines = [Content.styled(show_line(difference.field, 80), "bold")]
    if difference.before is not None:
        lines.append(Content.styled(f"- {show(difference.before, limit=1500)}", "$text-error"))
    if difference.after is not None:
        lines.append(Content.styled(f"+ {show(difference.after, limit=1500)}", "$text-success"))
    return Content("\n").join(lines)
