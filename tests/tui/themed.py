"""An app in mcphost's colours, for tests of a widget alone."""

from __future__ import annotations

from textual.app import App

from mcphost.tui.theme import DARK


class ThemedApp(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DARK.variables)
