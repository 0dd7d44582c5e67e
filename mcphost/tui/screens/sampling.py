"""A server's request for a language model's answer, from the question whether one may be asked to what the server gets.

Posts what the user wants of it. It stays while the model answers, and closes by itself at the end. What was changed of
an answer is kept with the question while it waits in the inbox, and nowhere else.

Specification: client/sampling (human in the loop).
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcphost.host.asked.sampling_handle import SamplingEdit, SamplingReply, SamplingState
from mcphost.host.questions import Answer
from mcphost.tui.saving import file_name
from mcphost.tui.screens.sampling_view import KEPT, EditedAnswer, SamplingView
from mcphost.tui.widgets.sampling_parts import asked_object, preview, sent_object
from mcphost.tui.widgets.sampling_states import SamplingStep, acts
from mcphost.tui.widgets.sampling_wishes import (
    SamplingContextWanted,
    SamplingEditWanted,
    SamplingRefuseWanted,
    SamplingStopWanted,
)
from mcphost.tui.widgets.wishes import BudgetWanted, MuteWanted


class SamplingScreen(SamplingView):
    """See `SamplingView`: the keys, and what each wants."""

    HELP = (
        "A server wants a language model to be asked, on your account. First you see what it would be asked, and can\n"
        "change all of it; no model is asked before you agree. Then the answer comes, and is yours to read, change,\n"
        "ask for again or refuse; the server gets nothing before you send it, and never learns why there is none.\n"
        "With manual you are the model. esc leaves: what was asked of you waits in the inbox, an answer goes on coming."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "agree", "agree", id="sampling.agree", tooltip="Ask the model; send the answer"),
        Binding("e", "edit", "edit", id="sampling.edit", tooltip="Change the block that is marked, or write one"),
        Binding("ctrl+r,ctrl+enter", "take", "take over", id="sampling.take", tooltip="Take over what was typed"),
        Binding("x", "drop", "leave out", id="sampling.drop", tooltip="Stop the answer; leave out what is marked"),
        Binding("m", "model", "model", id="sampling.model", tooltip="Choose who answers: a model, or you"),
        Binding("l", "limits", "limits", id="sampling.limits", tooltip="Max tokens, temperature, stops, tools"),
        Binding("c", "context", "add context", id="sampling.context", tooltip="Add what this server said before"),
        Binding("h", "history", "history", id="sampling.history", tooltip="Earlier blocks of the conversation"),
        Binding("r", "again", "ask again", id="sampling.again", tooltip="Ask the model once more"),
        Binding("t", "question", "question", id="sampling.question", tooltip="What was asked, or the answer"),
        Binding("f", "full", "in full", id="sampling.full", tooltip="Read the block that is marked in full"),
        Binding("w", "save", "save", id="sampling.save", tooltip="Save the block that is marked in a file", show=False),
        Binding("v", "json", "JSON", id="sampling.json", tooltip="What would be asked, or sent, as JSON"),
        Binding("d", "decline_with", "refuse", id="sampling.refuse", tooltip="Refuse, with words if you like"),
        Binding("n", "decline", "refuse at once", id="sampling.decline", tooltip="Refuse without words", show=False),
        Binding("M", "mute", "mute", id="sampling.mute", tooltip="Decline all it asks until mcphost exits"),
        Binding("b", "budget", "budget", id="sampling.budget", tooltip="Let the server use more; asks how much"),
        Binding("p", "park", "later", id="sampling.park", tooltip="Leave it in the inbox; f2 lists it"),
        Binding("escape", "back", "back", id="sampling.back", tooltip="Out of the box, or leave it in the inbox"),
    ]

    # What the user answers.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Each step has its keys; letters act where none are typed."""
        if action == "app.keys" or not self.is_mounted:
            return True
        return acts(action, self.standing)

    def action_agree(self) -> None:
        """Ask the model, or send the answer."""
        asking = self.standing.step is SamplingStep.ASKING
        self.answer(Answer(allow=True, content=None if asking else self._reply()))

    def action_again(self) -> None:
        """Ask the model once more."""
        if not self.sampling.model.by_hand:
            self.answer(Answer(allow=True, content=SamplingEdit()))

    def action_model(self) -> None:
        """Choose who answers; after an answer that asks again."""
        from mcphost.tui.screens.sampling_model import ModelScreen

        asking = self.standing.step is SamplingStep.ASKING
        words = "choose" if asking else "ask it"
        screen = ModelScreen(self.sampling.models, self.sampling.model.entry, self._host.config.path, words)
        self.app.push_screen(screen, self._take_model)

    def _take_model(self, entry: str | None) -> None:
        if entry is None or self.waiting is None:
            return
        if self.standing.step is SamplingStep.ASKING:
            self.post_message(SamplingEditWanted(self.sampling, SamplingEdit(model=entry)))
        else:
            self.answer(Answer(allow=True, content=SamplingEdit(model=entry)))

    def action_decline(self) -> None:
        """Refuse without words."""
        self._refuse("")

    def action_decline_with(self) -> None:
        """Refuse, with words for the server."""
        from mcphost.tui.screens.sampling_words import WordsScreen

        self.app.push_screen(WordsScreen(self._reason.server), self._refuse)

    def _refuse(self, words: str | None) -> None:
        if words is None:
            return
        if self.sampling.state is SamplingState.STREAMING:
            self.post_message(SamplingRefuseWanted(self.sampling, words))
        elif self.waiting is None:
            self._refusal = words
        else:
            self.answer(Answer(allow=False, reason=words))

    def action_mute(self) -> None:
        """No, and so to all that comes from there."""
        self.post_message(MuteWanted(self.sampling.server, True))

    def action_park(self) -> None:
        """Leave; what is asked waits in the inbox, with what was changed."""
        if self.waiting is not None and self.sampling.state is SamplingState.REVIEWING:
            self.waiting.kept[KEPT] = EditedAnswer(self._board.blocks, self._board.draft)
        self._left = True
        self.answer(None)
        self.dismiss(None)

    def _reply(self) -> SamplingReply | None:
        """What shall be sent instead of what came; None: that as it is."""
        blocks, by_hand = self._board.blocks, self.sampling.model.by_hand
        if blocks == self.sampling.blocks and not by_hand:
            return None
        return SamplingReply(blocks, self.sampling.model.name if by_hand else "")

    # What the user looks at and changes.

    async def action_back(self) -> None:
        """Out of the box; back to the answer; then out, and it waits in the inbox."""
        if self.standing.writing:
            self._board.take()
        elif self._board.editing:
            self._board.leave_editor()
        elif self._on_question:
            self.action_question()
        else:
            self.action_park()

    async def action_edit(self) -> None:
        """Edit the block that is marked."""
        self._say(await self._board.edit())

    def action_take(self) -> None:
        """Take over what was edited."""
        self._board.take()

    def action_drop(self) -> None:
        """Stop the answer, which keeps what came; else leave out the block that is marked."""
        if self.standing.step is SamplingStep.STREAMING:
            self.post_message(SamplingStopWanted(self.sampling))
        else:
            self._say(self._board.leave_out())

    async def action_history(self) -> None:
        """An earlier page of the conversation."""
        await self._board.turn()

    def action_question(self) -> None:
        """What was asked, or the answer again."""
        self._on_question = not self._on_question
        self._tell()

    def action_context(self) -> None:
        """See `SamplingContextWanted`."""
        self.post_message(SamplingContextWanted(self.sampling))

    def action_budget(self) -> None:
        """See `BudgetWanted`."""
        self.post_message(BudgetWanted(self.sampling.server))

    def action_limits(self) -> None:
        """Change how far the model may go."""
        from mcphost.tui.screens.sampling_limits import LimitsScreen

        def take(edit: SamplingEdit | None) -> None:
            if edit is not None:
                self.post_message(SamplingEditWanted(self.sampling, edit))

        self.app.push_screen(LimitsScreen(self.sampling), take)

    def action_full(self) -> None:
        """Read the block that is marked in full; a picture as large as there is room."""
        self._board.read_in_full(self._reason.server)

    def action_save(self) -> None:
        """Save the block that is marked."""
        from mcphost.tui.screens.save import SaveScreen

        def saved(path: Path | None) -> None:
            if path is not None:
                self.notify(f"Saved {path}", markup=False)

        view = self._board.list.current
        if view is not None:
            content, mime_type = view.block.content()
            name = file_name(self.sampling.server, "sampling", datetime.now(), mime_type)
            self.app.push_screen(SaveScreen(name, content, Path.cwd()), saved)

    def action_json(self) -> None:
        """What would be asked, or sent, exactly."""
        from mcphost.tui.screens.reader import ReaderScreen
        from mcphost.tui.widgets.json_text import json_text

        standing = self.standing
        if standing.step is SamplingStep.REVIEWING and not standing.question:
            connection = self._host.servers.get(self.sampling.server)
            session = None if connection is None else connection.session
            version = None if session is None else session.revision.version
            told = sent_object(preview(self.sampling, self._reply()), version)
            title = f"What {self._reason.server} would get"
        else:
            told, title = asked_object(self.sampling), "What the model is asked, in the protocol's words"
        self.app.push_screen(ReaderScreen(title, json_text(told), is_json=True))

    def _say(self, problem: str) -> None:
        if problem:
            self.notify(problem, severity="warning", markup=False)
