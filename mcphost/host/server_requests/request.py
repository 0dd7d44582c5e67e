"""A request of a server, and what a front can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcphost.host.tool_calls.call import ToolCall

FORM, URL, ROOTS, SAMPLING, WRITING = "form", "url", "roots", "sampling", "writing"

ALL: Final = frozenset({FORM, URL, ROOTS})
"""What a front can answer that shows every kind of question, but those about language models."""

SCREEN: Final = ALL | {SAMPLING, WRITING}
"""The same, and whether a model may be asked; and there is a person who can write what a model would have."""


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request of a server, with the call it is asked for as far as can be told."""

    server: str
    params: Mapping[str, Any]
    call: ToolCall | None = None
    certain: bool = False
    """Is the call known for sure? The request came on the call's own stream, or no other call runs on that server."""

    @property
    def number(self) -> int | None:
        return None if self.call is None else self.call.number

    @property
    def tool(self) -> str:
        """The tool that is called; empty where no call is known."""
        return "" if self.call is None else self.call.request.tool
