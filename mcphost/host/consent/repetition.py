"""The consent to a call that runs again and again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mcphost.json_values import canonical
from mcphost.protocol.models.tools import Tool


class Repetition:
    """Allows all runs of a call, in memory only, while the tool, its server's program and the arguments stay the same.

    ``seconds``: between two runs. ``times``: how often the call runs; None: until the user stops it.
    """

    def __init__(self, seconds: float, times: int | None = None) -> None:
        self.seconds, self.times = seconds, times
        self.allowed = ""
        """The user's yes to all runs, in words; empty while the user was not asked."""
        self._bound: Mapping[str, str] | None = None

    @property
    def often(self) -> str:
        """``every 5 s``."""
        return f"every {self.seconds:g} s" if self.seconds else "without a pause"

    @property
    def words(self) -> str:
        """``every 5 s until you stop it``."""
        return f"{self.often} until you stop it" if self.times is None else f"{self.often}, {self.times} times"

    def change(self, identity: str, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Name the part of the call that differs from the run that was allowed; empty if none does, or none ran yet.

        ``arguments`` hold the values of references.
        """
        if self._bound is None:
            return ""
        now = _parts(identity, tool, arguments)
        return next((part for part, was in self._bound.items() if now[part] != was), "")

    def bind(self, identity: str, tool: Tool, arguments: Mapping[str, Any], *, by_user: bool) -> None:
        """Note that a run was allowed with these ``arguments``, which hold the values of references.

        ``by_user``: the user was asked, and so allowed all further runs.
        """
        if self._bound is None:
            self._bound = _parts(identity, tool, arguments)
        if by_user:
            self.allowed = f"allowed by you, {self.words}, on {datetime.now():%d %b %Y %H:%M}"


def _parts(identity: str, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    return {
        "the server's command or address": identity,
        "the tool's definition": tool.canonical,
        "the arguments": canonical(arguments),
    }
