"""Shows sampling requests, and raises budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from textual.app import App, SystemCommand

from mcphost.config import entry_of
from mcphost.host.consent.questions import SamplingQuestion
from mcphost.host.events import Event, SamplingChanged
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.inbox.queue import QuestionQueue, SamplingChosen
from mcphost.tui.kit.messages import BudgetRequested


class SamplingController:
    """Acts for the sampling screen of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host, approver: ScreenApprover, questions: QuestionQueue) -> None:
        self._app, self._host, self._approver, self._questions = app, host, approver, questions

    def changed(self, events: Iterable[Event]) -> None:
        """Update the open screens of these requests."""
        changed = {event.sampling for event in events if isinstance(event, SamplingChanged)}
        if not changed:
            return
        from mcphost.tui.sampling.screen import SamplingScreen

        for screen in self._app.screen_stack:
            if isinstance(screen, SamplingScreen) and screen.sampling.number in changed:
                screen.call_later(screen.refresh_sampling)

    def on_sampling_chosen(self, event: SamplingChosen) -> None:
        self.show(event.number)

    def show(self, number: int) -> None:
        from mcphost.tui.sampling.screen import SamplingScreen

        sampling = self._host.sampling.all.get(number)
        if sampling is None or sampling.state.ended or len(self._app.screen_stack) > 1:
            return
        self._app.push_screen(SamplingScreen(self._host, sampling))
        self._questions.unpark(set(self._questions_of(number)))

    def on_budget_requested(self, event: BudgetRequested) -> None:
        self.raise_budget(event.server)

    def raise_budget(self, server: str) -> None:
        """Ask the user, then raise the sampling budget of this server."""
        from mcphost.tui.kit.facts_table import fact
        from mcphost.tui.kit.modal_screen import AskScreen
        from mcphost.tui.sampling.request_facts import has_budget, usage_words

        usage, called = self._host.sampling.usage(server), show_line(server, 60)
        if not has_budget(usage):
            self._app.notify(f"{called} has no budget to raise.", markup=False)
            return
        settings = self._host.config.servers[entry_of(server)].sampling  # no other server has a budget
        more = [f"{settings.budget_tokens:,} tokens"] if settings.budget_tokens is not None else []
        more += [f"{settings.budget_cost:g} by your prices"] if settings.budget_cost is not None else []
        facts = [
            fact("server", called),
            fact("so far", f"{usage_words(usage)}, in this run"),
            fact("more", f"{' and '.join(more)}, until mcphost exits"),
        ]

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._host.sampling.raise_budget(server)
                self._app.notify(f"{called} may go on: {usage_words(self._host.sampling.usage(server))}.", markup=False)

        self._app.push_screen(AskScreen(f"Raise the budget of {called}?", facts, "raise it"), answered)

    def commands(self) -> Iterator[SystemCommand]:
        for number, sampling in self._host.sampling.all.items():
            if not sampling.state.ended:
                title = f"A model's answer for {show_line(sampling.server, 60)}"
                yield SystemCommand(title, sampling.state.value, lambda number=number: self.show(number))
        for name in self._host.servers:
            usage = self._host.sampling.usage(name)
            if usage.most_tokens is not None or usage.most_cost is not None:
                title, about = (
                    f"Raise the budget of {show_line(name, 60)}",
                    "What it may use of your language models; asks first",
                )
                yield SystemCommand(title, about, lambda name=name: self.raise_budget(name))

    def _questions_of(self, number: int) -> Iterator[int]:
        for asked, waiting in self._approver.open.items():
            if isinstance(waiting.question, SamplingQuestion) and waiting.question.sampling == number:
                yield asked
