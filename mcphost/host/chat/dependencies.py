"""What a conversation is given of the host.

Knows shapes only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcphost.config import ChatConfig
from mcphost.host.catalog import OfferedTool
from mcphost.host.chat.preferences import ChatSettings
from mcphost.host.chat.tools import CheckedTools
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.models import ModelCatalog
from mcphost.host.tool_calls.call import CallRequest, ToolCall


@dataclass(frozen=True, slots=True)
class ChatParts:
    """Everything a conversation can do."""

    settings: Callable[[], ChatConfig]
    models: ModelCatalog
    tools: Callable[[], Sequence[OfferedTool]]
    """What all servers offer now."""
    instructions: Callable[[str], str]
    """What a server says on how to use it; empty where it says nothing."""
    folders: Callable[[], Sequence[str]]
    """The folders that servers may know of."""
    call: Callable[[CallRequest], ToolCall]
    """Begins a call."""
    runs: Callable[[str, str, Mapping[str, Any], str], bool]
    """Would a call (server, tool, arguments, what was read from outside) run now without a question?"""
    ask: Callable[[Question], Awaitable[Answer]]
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    changed: Callable[[int], None]
    """Tells that the conversation of this number changed."""
    keep: Callable[[str, Mapping[str, Any]], None]
    """Takes a record for the transcript of this id."""
    chosen: Callable[[ChatSettings, ChatSettings], None]
    """Takes what the user had set of a conversation, and has set now."""
    clock: Callable[[], float]
    mask: Callable[[str], str]
    checked: CheckedTools = field(default_factory=CheckedTools)
    """The same for all conversations, which are offered the same tools."""
