"""Copies tool calls as commands, JSON-RPC and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual.app import App

from mcphost.errors import UnknownName
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.tui.kit.messages import CopyAsRequested
from mcphost.tui.start_info import StartInfo
from mcphost.tui.tools.controller import NOT_OFFERED

if TYPE_CHECKING:
    from mcphost.host.tool_calls.copies import CallCopy

MOST_NAMED: Final = 5
"""Variables that are named after a copy."""


class CopyController:
    """``copy`` copies a text, which its second argument names."""

    def __init__(self, app: App[Any], host: Host, start: StartInfo, copy: Callable[[str, str], None]) -> None:
        self._app, self._host, self._copy_text = app, host, copy
        self._config = start.config_path if start.fixed else None
        """The file that a command line has to name."""
        self._is_demo = start.is_demo

    def on_copy_as_requested(self, event: CopyAsRequested) -> None:
        """Let the user choose how the call is written, and copy that."""
        from mcphost.tui.tools.copying import CopyAsScreen

        if event.arguments is None:
            self._warn("The arguments are not known: there is nothing to copy.")
            return
        demo = self._is_demo and self._host.config.path is None
        try:
            copies = self._host.copies.of(event.server, event.tool, event.arguments, self._config, demo=demo)
        except UnknownName:
            self._warn(NOT_OFFERED)
            return
        self._app.push_screen(CopyAsScreen(show_line(event.tool, 60), copies), self._copy)

    def _copy(self, copy: CallCopy | None) -> None:
        if copy is None or copy.problem:
            return
        self._copy_text(copy.text, copy.kind.value)
        if copy.variables:
            names = ", ".join(f"${name}" for name in copy.variables[:MOST_NAMED])
            more = " …" if len(copy.variables) > MOST_NAMED else ""
            self._warn(f"{names}{more}: no secret is copied; set the variables before you use it.")

    def _warn(self, text: str) -> None:
        self._app.notify(text, severity="warning", markup=False)
