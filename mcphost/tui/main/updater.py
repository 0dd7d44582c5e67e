"""Updates the panes of the main screen after events of the host."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.content import Content
from textual.timer import Timer

from mcphost.config import ComparedServer
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.subscriptions import Subscription
from mcphost.host.events import (
    AgentsChanged,
    CallChanged,
    CallFinished,
    CallStarted,
    ChatChanged,
    Event,
    Logged,
    RepetitionChanged,
    SkillLoaded,
    SkillRead,
    TrafficAdded,
)
from mcphost.host.host import Host
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.servers.card import ProgramUsage, questions_of
from mcphost.tui.servers.list import has_countdown
from mcphost.tui.sign_in.status import SignInStatusCache
from mcphost.tui.start_info import StartInfo

if TYPE_CHECKING:  # late: the first frame does without conversations
    from mcphost.host.chat.chat import Chat

CALLS = (CallStarted, CallChanged, CallFinished)
ELSEWHERE = (AgentsChanged, ChatChanged, Logged, RepetitionChanged, SkillLoaded, SkillRead, TrafficAdded)
"""Events that change nothing of the servers."""


class MainScreenUpdater:
    """``questions`` are those that wait unseen."""

    def __init__(
        self,
        host: Host,
        main: MainScreen,
        questions: QuestionQueue,
        sign_in_status: SignInStatusCache,
        start: StartInfo,
    ) -> None:
        self._host, self._main, self._questions, self._sign_in_status = host, main, questions, sign_in_status
        self._how_to, self._elsewhere, self._fixed = start.how_to, "", start.fixed
        self._config_name = "demo" if start.is_demo else start.config_path.name if start.config_path else ""
        self._ticking: Timer | None = None

    def show_elsewhere(self, words: str) -> None:
        """Say which other programs have servers: ``Claude Code has 4 servers``, or nothing."""
        self._elsewhere = words
        self._main.show_elsewhere(words)
        if not self._host.servers:
            self.chosen()

    def _how_to_add(self) -> Content:
        """Sentences about adding a server, with the keys marked."""
        if self._fixed:
            return Content(self._how_to)
        a, i = (("a", "bold $text-accent"), ("i", "bold $text-accent"))
        if self._elsewhere:
            found = Content.assemble(f"{self._elsewhere}: ", i, " looks at them, and ", a, " adds another.")
        else:
            adds = " adds one: a command line, an address, a link or a file. "
            found = Content.assemble(a, adds, i, " looks at those of other programs.")
        return Content.assemble(found, f"\n\n{self._how_to}" if self._how_to else "")

    def leave_demo(self) -> None:
        """Servers of the user's own took the demo's place."""
        path = self._host.config.path
        self._config_name = path.name if path else ""
        self.everything()

    def everything(self) -> None:
        self.servers()
        self.top_line()
        self._main.logs.refresh_logs()

    def changed(self, events: Iterable[Event]) -> None:
        """Update the panes that these events concern."""
        if any(isinstance(event, Logged) for event in events):
            self._main.logs.refresh_logs()
        if self._main.traffic is not None and any(isinstance(event, TrafficAdded) for event in events):
            self._main.traffic.refresh_traffic()
        if any(isinstance(event, CALLS) for event in events):
            self._calls(events)
        if any(isinstance(event, RepetitionChanged) for event in events):
            self._main.tools.refresh_runs()
        if any(isinstance(event, SkillLoaded | SkillRead) for event in events):
            self.skills()
        if any(not isinstance(event, (*CALLS, *ELSEWHERE)) for event in events):
            self.servers()
        self.top_line()

    def servers(self) -> None:
        """Update the list of servers, and what depends on the selected one."""
        self._main.servers.show_servers(list(self._host.servers.values()), time.monotonic(), self._signing_in())
        self._main.servers_changed()
        self.chosen()

    def chosen(self) -> None:
        """Update the tools and the card for the selected server."""
        server = self._main.servers.chosen
        self._main.tools.show_no_servers(None if self._host.servers else self._how_to_add())
        self._main.tools.show_tools(self._host.catalog.tools(server), server)
        self.offers()
        self.card()
        self._main.calls.show_calls(self._host.tool_calls.calls.values(), server)

    def offers(self) -> None:
        """Update the resources, prompts and skills of the selected server, and the counts of all that it offers."""
        server, catalog, main = self._main.servers.chosen, self._host.catalog, self._main
        resources, templates, prompts = catalog.resources(server), catalog.templates(server), catalog.prompts(server)
        tools, skills = len(catalog.tools(server)), catalog.skills(server)
        counts = {"tools": tools, "resources": len(resources) + len(templates), "prompts": len(prompts)}
        main.show_counts({**counts, "skills": len(skills)})
        if main.resources is not None and main.resources.is_attached:  # not while the app exits
            main.resources.show_resources(resources, templates, self._watched(), server)
        if main.prompts is not None and main.prompts.is_attached:
            main.prompts.show_prompts(prompts, server)
        self.skills()
        if not main.has_skills and any(
            each.listings.declared(CatalogKind.SKILLS) for each in self._host.servers.values()
        ):
            main.call_later(main.add_skills_tab)

    def skills(self) -> None:
        """Update the skills of the selected server, whose states depend on what the user approved and read."""
        main, server = self._main, self._main.servers.chosen
        if main.skills is not None and main.skills.is_attached:
            main.skills.show_skills(self._host.catalog.skills(server), server)

    def _watched(self) -> dict[tuple[str, str], Subscription]:
        names = self._host.servers
        return {(name, uri): watch for name in names for uri, watch in self._host.resources.subscriptions(name).items()}

    def top_line(self) -> None:
        """Update the top bar; it is updated every second while it shows a duration."""
        running, servers = self._host.tool_calls.running(), list(self._host.servers.values())
        repeated = self._host.repeated_calls.going_on
        # A run of a repeated call is named only while it waits for the user: else the line would flicker.
        running = [call for call in running if call.request.repetition is None or call.asks]
        self._main.top_line.show_state(
            [each for each in servers if not isinstance(each.config, ComparedServer)],
            (self._questions.unseen, self._questions.given_up),
            self._questions.oldest,
            running,
            repeated,
            self._signing_in(),
            (self._profile(), self._model(), self._tokens(), self._config_name),
        )
        self._keep_time(bool(running) or has_countdown(servers) or self._questions.counts_down)

    def _profile(self) -> str:
        profile = self._host.config.profile
        return f"profile {profile}" if profile else ""

    def _model(self) -> str:
        """The entry of ``[models]`` that answers in this conversation, or would in a new one."""
        config, chat = self._host.config, self._chat()
        return (chat.entry if chat else None) or config.chat.model or next(iter(config.models), "no model")

    def _tokens(self) -> str:
        """The tokens that the conversation used, as in the chat."""
        chat = self._chat()
        return f"{chat.usage.amount} tokens" if chat and chat.usage.tokens else ""

    def _chat(self) -> Chat | None:
        """The conversation that the chat shows, else the last one; None before the first."""
        shown = self._main.chat.chat if self._main.chat else None
        return shown or next(reversed([*self._host.chats.all.values()]), None)

    def _signing_in(self) -> list[str]:
        return [each.server for each in self._host.sign_ins.all.values() if not each.state.ended]

    def on_server_card_usage_read(self, _: object) -> None:
        self.card()

    def card(self) -> None:
        """Update the card of the selected server."""
        server = self._main.servers.described
        connection = self._host.servers.get(server or "")
        dropped = self._host.logs.dropped(server) if server else 0
        questions = questions_of(self._host, server or "")
        usage = None if connection is None else self._program_usage(connection)
        sign_in = self._sign_in_status.summary_of(server or "")
        sharing = None if connection is None else self._host.sharing(connection.name)
        self._main.card.show_server(connection, time.monotonic(), dropped, sign_in, questions, usage, sharing)

    def _program_usage(self, connection: Connection) -> ProgramUsage | None:
        usage = self._host.process_usage
        return None if usage.program(connection) is None else ProgramUsage(usage.reading_of(connection))

    def _calls(self, events: Iterable[Event]) -> None:
        self._main.calls.show_calls(self._host.tool_calls.calls.values(), self._main.servers.chosen)
        shown = self._main.tools.shown_call
        if any(isinstance(event, CallChanged | CallFinished) and event.call == shown for event in events):
            self._main.tools.refresh_call()

    def _keep_time(self, needed: bool) -> None:
        if needed and self._ticking is None:
            self._ticking = self._main.set_interval(1.0, self._tick)
        elif not needed and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    def _tick(self) -> None:
        self.top_line()
        if has_countdown(list(self._host.servers.values())):
            self._main.servers.show_servers(list(self._host.servers.values()), time.monotonic(), self._signing_in())
            self.card()
