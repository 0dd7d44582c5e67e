"""What the user wants of requests for a model's answer, done by the host: change one, stop it, raise a budget.

Knows the host and the screens. Refuses to answer: the screen does, and `mcphost.tui.inbox.queue` hands that on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand

from mcphost.host.consent.questions import SamplingQuestion
from mcphost.host.events import Event, SamplingChanged
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.inbox.queue import AnswerChosen, QuestionQueue
from mcphost.tui.kit.messages import BudgetRequested

if TYPE_CHECKING:
    from mcphost.tui.sampling.messages import (
        SamplingContextWanted,
        SamplingEditWanted,
        SamplingInFront,
        SamplingRefuseWanted,
        SamplingStopWanted,
    )

    _App = App[Any]
else:
    _App = object


class LendingWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    approver: ScreenApprover
    questions: QuestionQueue

    def samplings_changed(self, events: Iterable[Event]) -> None:
        """Show what went on where it is looked at."""
        changed = {event.sampling for event in events if isinstance(event, SamplingChanged)}
        if not changed:
            return
        from mcphost.tui.sampling.screen import SamplingScreen

        for screen in self.screen_stack:
            if isinstance(screen, SamplingScreen) and screen.sampling.number in changed:
                screen.call_later(screen.refresh_sampling)

    def on_sampling_in_front(self, event: SamplingInFront) -> None:
        """What is asked about it may have waited for that."""
        self.questions.ask_next()

    def on_sampling_edit_wanted(self, event: SamplingEditWanted) -> None:
        """Ask this instead, or another model."""
        event.sampling.edit(event.edit)

    def on_sampling_context_wanted(self, event: SamplingContextWanted) -> None:
        """Add what the server said before."""
        event.sampling.add_context()

    def on_sampling_stop_wanted(self, event: SamplingStopWanted) -> None:
        """Stop the answer."""
        event.sampling.stop()

    def on_sampling_refuse_wanted(self, event: SamplingRefuseWanted) -> None:
        """Stop the answer, and refuse."""
        event.sampling.refuse(event.words)

    def on_answer_chosen(self, event: AnswerChosen) -> None:
        """Show how an answer goes on."""
        self.show_sampling(event.number)

    def show_sampling(self, number: int) -> None:
        """Show how a request stands."""
        from mcphost.tui.sampling.screen import SamplingScreen

        sampling = self.host.sampling.all.get(number)
        if sampling is None or sampling.state.ended or len(self.screen_stack) > 1:
            return
        self.push_screen(SamplingScreen(self.host, sampling))
        self.questions.unpark(set(self._asked_of_model(number)))

    def _asked_of_model(self, number: int) -> Iterator[int]:
        for asked, waiting in self.approver.open.items():
            if isinstance(waiting.question, SamplingQuestion) and waiting.question.sampling == number:
                yield asked

    # Budgets.

    def on_budget_requested(self, event: BudgetRequested) -> None:
        """Ask, then let the server use more."""
        self.raise_budget(event.server)

    def raise_budget(self, server: str) -> None:
        """Ask, then let this server use more of the models."""
        from mcphost.tui.kit.facts_table import fact
        from mcphost.tui.kit.modal import AskScreen
        from mcphost.tui.sampling.facts import has_budget, spent_words

        spent, called = self.host.sampling.usage(server), show_line(server, 60)
        if not has_budget(spent):
            self.notify(f"{called} has no budget that could be used up.", markup=False)
            return
        settings = self.host.config.servers[server].sampling
        more = [f"{settings.budget_tokens:,} tokens"] if settings.budget_tokens is not None else []
        more += [f"{settings.budget_cost:g} by your prices"] if settings.budget_cost is not None else []
        facts = [
            fact("server", called),
            fact("so far", f"{spent_words(spent)}, in this run"),
            fact("more", f"{' and '.join(more)}, until mcphost exits"),
        ]

        def answered(agreed: bool | None) -> None:
            if agreed:
                self.host.sampling.raise_budget(server)
                self.notify(f"{called} may go on: {spent_words(self.host.sampling.usage(server))}.", markup=False)

        self.push_screen(AskScreen(f"Raise what {called} may use?", facts, "raise it"), answered)

    # For the palette.

    def lending_commands(self) -> Iterator[SystemCommand]:
        """Every action."""
        for number, sampling in self.host.sampling.all.items():
            if not sampling.state.ended:
                called, state = show_line(sampling.server, 60), sampling.state.value
                yield SystemCommand(
                    f"A model's answer for {called}", state, lambda number=number: self.show_sampling(number)
                )
        for name in self.host.servers:
            spent = self.host.sampling.usage(name)
            if spent.most_tokens is not None or spent.most_cost is not None:
                called, told = show_line(name, 60), "What it may use of your language models; asks first"
                yield SystemCommand(f"Raise the budget of {called}", told, lambda name=name: self.raise_budget(name))
