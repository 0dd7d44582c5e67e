"""Asks at the terminal whether a skill may be loaded for a model."""

from __future__ import annotations

from collections.abc import Iterator

from mcphost.cli.approver import NO_CUT, shown_text, typed_line
from mcphost.cli.margin import labelled
from mcphost.cli.terminal import say, terminal_size
from mcphost.host.chat.acting_skills import what_it_may_do
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, SkillQuestion
from mcphost.protocol.display import show_line, show_name


async def ask_about_skill(question: SkillQuestion) -> Answer:
    """Show what would be loaded, and read a whole line; it is allowed for good only by the word ``always``."""
    say(*skill_lines(question))
    answers = "y/N" if question.why_not_always else "y/N/always"
    name = show_name(question.skill.label, 80)
    line = (await typed_line(f"Load the skill {name} of {question.server}? [{answers}] ")).lower()
    if line == "always" and not question.why_not_always:
        return Answer(allow=True, lifetime=Lifetime.ALWAYS)
    return Answer(allow=line in ("y", "yes"))


def skill_lines(question: SkillQuestion) -> Iterator[str]:
    """Everything a person needs to know to allow the skill, safe for a terminal."""
    skill, width, found = question.skill, terminal_size()[0], question.approval.differences
    yield from labelled("server", question.server, width)
    yield from labelled("sent by", show_line(question.identity, NO_CUT), width)
    yield from labelled("skill", f"{show_name(skill.label, 80)}, {show_line(skill.uri, 300)}", width)
    yield from labelled("about", show_line(skill.description, 1024), width)
    yield from labelled("model gets", f"its SKILL.md, about {question.tokens:,} tokens; {what_it_may_do(skill)}", width)
    yield from labelled("rule", question.rule, width)
    if question.hidden:
        yield from labelled("beware", f"its frontmatter holds {question.hidden} invisible characters", width)
    for file in found.files:
        yield from labelled("changed", f"{show_line(file.path, 200)}: {file.words}", width)
    for change in (*found.frontmatter, *found.command):
        words = f"{show_line(change.field)}: {shown_text(change.before)} -> {shown_text(change.after)}"
        yield from labelled("changed", words, width)
