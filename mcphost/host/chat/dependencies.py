"""What all conversations of a host share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from mcphost.config import ChatConfig, ComparedServer, Config
from mcphost.host.background import BackgroundTasks
from mcphost.host.catalog import Catalog, CatalogTool
from mcphost.host.chat.preferences import ChatPreferences, ChatSettings
from mcphost.host.chat.tool_selection import CheckedTools
from mcphost.host.chat.transcript_store import TranscriptStore
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.policy import PolicyVerdict
from mcphost.host.consent.questions import Approver
from mcphost.host.events import ChatChanged, EventBus
from mcphost.host.models import ModelCatalog
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ChatDependencies:
    """The services that a conversation uses, and what it asks of several of them."""

    config: Callable[[], Config]
    models: ModelCatalog
    catalog: Catalog
    servers: Servers
    roots: RootsService
    tool_calls: ToolCallService
    consent: ConsentBroker
    approver: Approver
    transcripts: TranscriptStore
    preferences: ChatPreferences
    bus: EventBus
    background: BackgroundTasks
    mask: Callable[[str], str]
    checked: CheckedTools = field(default_factory=CheckedTools)
    """The same for all conversations, which are offered the same tools."""

    @property
    def settings(self) -> ChatConfig:
        """The table ``[chat]`` as it is now."""
        return self.config().chat

    def tools(self) -> Sequence[CatalogTool]:
        """What all servers offer now, without those that are only compared."""
        servers = self.servers
        compared = {name for name, each in servers.items() if isinstance(each.config, ComparedServer)}
        return [each for each in self.catalog.tools() if each.server in servers and each.server not in compared]

    def instructions(self, server: str) -> str:
        """A server's instructions; may be empty."""
        connection = self.servers.get(server)
        session = None if connection is None else connection.session
        return "" if session is None else session.server.instructions or ""

    def folders(self) -> Sequence[str]:
        """The folders that all servers may know of."""
        return [str(each.path) for each in self.roots.offered(None) if not each.problem]

    def runs_unasked(self, server: str, tool: str, arguments: Mapping[str, Any], outside: str) -> bool:
        """Would a call run now without a question? ``outside``: what the model has read from outside."""
        connection = self.servers.get(server)
        known = next((each.tool for each in self.catalog.tools(server) if each.tool.name == tool), None)
        if connection is None or known is None:
            return False
        decision = self.consent.foresee(server, connection.config.identity, known, arguments, outside=outside)
        return decision is not PolicyVerdict.ASK

    def publish_change(self, number: int) -> None:
        """Publish that the conversation of this number changed."""
        self.bus.publish(ChatChanged(number))

    def keep(self, chat_id: str, record: Mapping[str, Any]) -> None:
        """Add a record to the transcript of a conversation, unless transcripts are switched off."""
        if self.settings.save:
            self.transcripts.keep(chat_id, record)

    def remember(self, before: ChatSettings, after: ChatSettings) -> None:
        """Keep what the user changed in a conversation for later ones."""
        self.preferences.follow(before, after)
        self.background.start_if_open(self.preferences.save(), "save chat preferences")
