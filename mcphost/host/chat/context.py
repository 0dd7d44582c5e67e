"""The services that all conversations of a host share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcphost.config import ChatConfig, ComparedServer, Config
from mcphost.host.background import BackgroundTasks
from mcphost.host.catalog import Catalog, CatalogTool
from mcphost.host.chat.preferences import ChatPreferences, ChatSettings
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.locked_tools import unlocked
from mcphost.host.consent.policy import PolicyDecision
from mcphost.host.consent.questions import Approver
from mcphost.host.events import ChatChanged
from mcphost.host.reporting import Reporting
from mcphost.host.resources import ResourceService
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

if TYPE_CHECKING:  # imported when a conversation begins: most commands have none
    from mcphost.host.chat.tool_selection import CheckedTools
    from mcphost.host.chat.transcript_store import TranscriptStore
    from mcphost.host.models import ModelCatalog
    from mcphost.host.skills.service import SkillService
    from mcphost.host.skills.windows import SkillWindow
    from mcphost.protocol.models.skills import Skill


@dataclass(frozen=True)
class ChatContext:
    """The services that conversations use, and what they ask of several of them."""

    config: Callable[[], Config]
    open_models: Callable[[], ModelCatalog]
    catalog: Catalog
    servers: Servers
    roots: RootsService
    resources: ResourceService
    open_skills: Callable[[], SkillService]
    tool_calls: ToolCallService
    consent: ConsentBroker
    approver: Approver
    preferences: ChatPreferences
    transcript_folder: Path | None
    """None: transcripts are not kept."""
    background: BackgroundTasks
    reporting: Reporting

    @cached_property
    def models(self) -> ModelCatalog:
        """The language models, loaded at the first use."""
        return self.open_models()

    @cached_property
    def skills(self) -> SkillService:
        """The skills of servers, loaded at the first use."""
        return self.open_skills()

    @cached_property
    def transcripts(self) -> TranscriptStore:
        """The saved conversations."""
        from mcphost.host.chat.transcript_store import TranscriptStore

        return TranscriptStore(self.transcript_folder, self.reporting.mask, self.reporting.bus.alarm)

    @cached_property
    def checked_tools(self) -> CheckedTools:
        """The checks of tools, shared because all conversations are offered the same ones."""
        from mcphost.host.chat.tool_selection import CheckedTools

        return CheckedTools()

    @property
    def settings(self) -> ChatConfig:
        """The table ``[chat]`` as it is now."""
        return self.config().chat

    def tools(self) -> Sequence[CatalogTool]:
        """The tools that all servers offer now, except those of servers opened for a comparison."""
        servers = self.servers
        compared = {name for name, each in servers.items() if isinstance(each.config, ComparedServer)}
        return [each for each in self.catalog.tools() if each.server in servers and each.server not in compared]

    def unlocked(self, offered: CatalogTool) -> str:
        """Why a tool is not as in the lock of the policy; empty if it is."""
        connection = self.servers.get(offered.server)
        identity = connection.config.identity if connection else ""
        return unlocked(self.config(), offered.server, identity, offered.tool)

    def instructions(self, server: str) -> str:
        """A server's instructions; may be empty."""
        connection = self.servers.get(server)
        session = None if connection is None else connection.session
        return "" if session is None else session.server.instructions or ""

    def saved_window(self, server: str, skill: Skill) -> SkillWindow:
        """A window on the entry that a saved conversation holds."""
        from mcphost.host.skills.windows import WindowBasis

        connection = self.servers.get(server)
        identity = "" if connection is None else connection.config.identity
        return self.skills.window(server, identity, skill, WindowBasis.EARLIER)

    def skill_problem(self, window: SkillWindow) -> str:
        """Why a model must read no file of a skill now, as a sentence; empty where it may."""
        from mcphost.host.skills.windows import WindowBasis

        server, skill = window.server, window.skill
        again = f"/skill {show_line(server, 60)}:{show_line(skill.uri, 200)} asks you again."
        if window.problem:
            return f"{window.problem} {again}"
        connection = self.servers.get(server)
        if connection is None or not connection.ready:
            return f"The server {show_line(server, 60)} is not connected."
        answer = self.skills.unasked(server, skill)
        if answer is not None and not answer.allow:  # since the user was asked, or in another run
            return f"It must not be used: {answer.reason}."
        if answer is None and window.basis is WindowBasis.EARLIER:
            return f"You allowed it in another run. {again}"
        return ""

    def folders(self) -> Sequence[str]:
        """The folders that are shared with all servers."""
        return [str(each.path) for each in self.roots.offered(None) if not each.problem]

    def runs_unasked(self, server: str, tool: str, arguments: Mapping[str, Any], outside: str, skill: str) -> bool:
        """True if a call would run now without a question. For ``outside`` and ``skill`` see `CallRequest`."""
        connection = self.servers.get(server)
        known = next((each.tool for each in self.catalog.tools(server) if each.tool.name == tool), None)
        if connection is None or known is None:
            return False
        decision = self.consent.foresee(
            server, connection.config.identity, known, arguments, outside=outside, skill=skill
        )
        return decision is not PolicyDecision.ASK

    def publish_change(self, number: int) -> None:
        self.reporting.bus.publish(ChatChanged(number))

    def keep(self, chat_id: str, record: Mapping[str, Any]) -> None:
        """Add a record to the transcript of a conversation, unless transcripts are switched off."""
        if self.settings.save:
            self.transcripts.keep(chat_id, record)

    def remember(self, before: ChatSettings, after: ChatSettings) -> None:
        """Keep what the user changed in a conversation for later ones."""
        self.preferences.follow(before, after)
        self.background.start_if_open(self.preferences.save(), "save chat preferences")
