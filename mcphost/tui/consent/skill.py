"""The dialog for a skill: what a model would get from which server, and what changed since it was approved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.definition_diff import Difference
from mcphost.host.consent.questions import Answer, SkillQuestion
from mcphost.host.consent.skill_approvals import FileChange, SkillApproval, SkillState
from mcphost.protocol.display import enumerated, show, show_line, size_text
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.call_rows import when_text
from mcphost.tui.consent.difference import difference_facts
from mcphost.tui.kit.answers import LATER, SCROLL_FIRST, AnswerOption, AnswerOptions, ReadToEnd
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal_screen import QuestionDialog
from mcphost.tui.kit.rows import RowList

LISTED: Final = 12
"""Files of an entry that are named; f lists all of them with their digests."""

CHANGES: Final = 100
"""Changed files that are named."""


class SkillScreen(QuestionDialog):
    """Dismissed with the answer, or with None if the question was parked or withdrawn."""

    WITHDRAWN = "nothing was read"
    HELP = (
        "A model is about to get a skill: instructions and files of a server. None of it has been read yet; this is "
        "what its entry says. An approval holds for exactly these files: other content is asked about again. "
        "Then SKILL.md is read and verified. You can agree once the end was on screen."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "once", id="skill.once", tooltip="Use it this time"),
        Binding("u", "allow('session')", "until exit", id="skill.session", tooltip="Approve it until mcphost exits"),
        Binding("a", "allow('always')", "always", id="skill.always", tooltip="Approve it until a file changes"),
        Binding("n", "decline", "don't use", id="skill.decline", tooltip="Read nothing"),
        Binding("f", "files", "files", id="skill.files", tooltip="All its files, with sizes and digests"),
        Binding("d", "definition", "entry", id="skill.definition", tooltip="The entry as its server sends it"),
        Binding("space,pagedown", "page(1)", "scroll", id="skill.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="skill.up", show=False),
    ]

    DEFAULT_CSS = """
    SkillScreen { .hint { height: auto; color: $text-warning; } }
    """

    def __init__(self, waiting: OpenQuestion, question: SkillQuestion) -> None:
        super().__init__(waiting, classes="-careful" if question.careful else None)
        self.question = question
        self.what, self.answers = ReadToEnd(FactsTable(skill_facts(question)), classes="between"), AnswerOptions()
        self._hint = Static(SCROLL_FIRST, classes="hint", markup=False)

    def compose(self) -> ComposeResult:
        self.dock_below(True)
        skill, server = show_line(self.question.skill.label, 70), show_line(self.question.server, 60)
        title = Content.assemble("Use the skill ", (skill, "bold"), " of ", (server, "bold"), "?")
        with self.framed(title, Content(f"asked by {show_line(self.question.origin, 30)}")):
            yield self.what
            with Vertical(classes="below"):
                yield self._hint
                yield self.answers

    def on_mount(self) -> None:
        self._hint.display = False
        self.answers.offer(self._options(), at="n")
        self.answers.focus()

    @on(ReadToEnd.Measured)
    def _measured(self) -> None:
        self._hint.display = not self.what.reached
        self.answers.offer(self._options())
        self.call_after_refresh(self.post_placed)

    @on(RowList.Selected)
    async def _answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        await self.run_action(event.item.action)

    def action_allow(self, lifetime: str) -> None:
        """Allow, once everything was on screen."""
        if not self.what.reached:
            self.refuse_locked()
        elif self._why_not(Lifetime(lifetime)):
            self.app.bell()
        else:
            self.dismiss(Answer(allow=True, lifetime=Lifetime(lifetime)))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_page(self, direction: int) -> None:
        self.what.page(direction)

    def action_files(self) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{show_line(self.question.server, 60)} › files of {show_line(self.question.skill.label, 60)}"
        self.app.push_screen(ReaderScreen(title, "\n".join(_listed(self.question.skill))))

    def action_definition(self) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{show_line(self.question.server, 60)} › entry"
        self.app.push_screen(ReaderScreen(title, json_text(self.question.skill.definition()), is_json=True))

    def _why_not(self, lifetime: Lifetime) -> str:
        """Why it cannot be allowed for so long; empty where it can."""
        question = self.question
        lasts = lifetime is Lifetime.ALWAYS or (lifetime is Lifetime.SESSION and question.skill.dynamic)
        return question.why_not_always if lasts else ""

    def _options(self) -> Iterator[AnswerOption]:
        locked = not self.what.reached
        yield AnswerOption("y", "use it this time", "allow('once')", locked=locked)
        for key, words, lifetime in (
            ("u", "approve it until mcphost exits", Lifetime.SESSION),
            ("a", "approve it always (until one of its files changes)", Lifetime.ALWAYS),
        ):
            why_not = self._why_not(lifetime)
            words = f"not offered: {show_line(why_not, 100)}" if why_not else words
            yield AnswerOption(key, words, f"allow('{lifetime.value}')", locked=locked or bool(why_not))
        yield AnswerOption("n", "don't use it", "decline")
        yield AnswerOption("p", LATER, "park")


def skill_facts(question: SkillQuestion) -> Iterator[Fact]:
    """Facts for the decision; foreign text in them is safe to show."""
    skill, approval = question.skill, question.approval
    yield fact("history", *history(approval))
    yield from change_facts(approval)
    yield fact("from", f"{show_line(question.server, 60)} · {show(question.identity, limit=2000)}")
    yield fact("uri", show_line(skill.uri, 500))
    yield fact("rule", show_line(question.rule, 200))
    yield from _goes_to_the_model(question)
    if question.hidden:
        words = f"its frontmatter holds {question.hidden} invisible characters, marked ⟨U+…⟩"
        yield fact("beware", words, "bold $text-error")
    for finding in skill.findings:
        yield fact("beware", show_line(finding.words, 300), "$text-warning")
    if not any(each.field == "description" for each in approval.differences.frontmatter):
        yield Fact("description", Content.styled(show(skill.description, limit=4000), "italic $foreground-muted"))


def _goes_to_the_model(question: SkillQuestion) -> Iterator[Fact]:
    skill, server = question.skill, show_line(question.server, 60)
    own = skill.file(skill.uri)
    size = "of unknown size" if own is None else f"{size_text(own.size)}, about {question.tokens:,} tokens"
    yield fact("model gets", f"SKILL.md, {size}, marked as untrusted text of {server}; you see it first")
    others = [each for each in skill.files if each is not own]
    if others:
        count = "1 more file" if len(others) == 1 else f"{len(others):,} more files"
        total = size_text(sum(each.size for each in others))
        yield fact("may read", f"{count}, {total}, each verified when it is read")
    else:
        yield fact("may read", "whatever its server calls part of it" if skill.dynamic else "no other file")
    for each in others[:LISTED]:
        yield fact("", f"{show_line(skill.path_of(each.uri), 120)} · {size_text(each.size)}")
    if len(others) > LISTED:
        yield fact("", f"… and {len(others) - LISTED:,} more: f lists all")
    for each in skill.nested[:LISTED]:
        yield fact("not with it", f"{show_line(skill.path_of(each.uri), 120)}, a skill of its own")
    if asked := enumerated(show_line(field, 40) for field in skill.ignored[:LISTED]):
        yield fact("ignored", f"{asked} in its frontmatter: a skill is granted nothing")


def _listed(skill: Skill) -> Iterator[str]:
    """The files of the entry with sizes and digests, a line each; not safe to show."""
    if skill.dynamic:
        yield "Its server lists no file, and vouches for none."
    width = max((len(size_text(each.size)) for each in skill.files), default=0)
    for each in skill.files:
        yield f"{size_text(each.size):>{width}}  {each.digest}  {skill.path_of(each.uri)}"


def history(approval: SkillApproval) -> tuple[str, str]:
    """Since when the skill is approved, and the style to say it in."""
    since = "" if approval.since is None else f"since you approved it {when_text(approval.since)}"
    if approval.state is SkillState.CHANGED:
        return f"CHANGED {since}", "bold $text-error"
    if approval.state is SkillState.DYNAMIC:
        return "dynamic: asked each time", "$text-warning"
    if approval.lapsed:
        return f"unchanged {since}; that was too long ago (policy.remember_days)", ""
    return f"unchanged {since}" if since else "not approved before", ""


def change_facts(approval: SkillApproval) -> Iterator[Fact]:
    """The files that were added, removed or rotated, and what else differs from the approved skill."""
    changes = approval.differences
    for each in changes.files[:CHANGES]:
        yield from _file_facts(each)
    if len(changes.files) > CHANGES:
        yield fact("", f"… and {len(changes.files) - CHANGES:,} more changed files: f lists the files as they are now")
    text = () if changes.text is None else (Difference("SKILL.md", *changes.text),)
    for difference in (*changes.command, *changes.frontmatter, *text):
        yield from difference_facts(difference)


def _file_facts(change: FileChange) -> Iterator[Fact]:
    how = "added" if change.before is None else "removed" if change.after is None else "rotated"
    yield fact(how, show_line(change.path, 120), "bold")
    before = Content("") if change.before is None else Content.styled(f"- {_digest(change.before)}", "$text-error")
    after = Content("") if change.after is None else Content.styled(f"+ {_digest(change.after)}", "$text-success")
    if change.before is None or change.after is None:
        yield Fact("", before + after)
    else:
        yield Fact("", before, other=after)


def _digest(file: SkillFile) -> str:
    """The size, and as much of the digest as tells files apart: f shows all of it."""
    return f"{size_text(file.size)} · {file.digest[:23]}…"
