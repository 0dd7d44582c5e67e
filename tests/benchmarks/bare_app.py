"""The alternative to the screen: a Textual app with the kinds of widgets the main screen mounts, and nothing behind."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Footer, Input, OptionList, RichLog, Static, TabbedContent, TabPane


class BareApp(App[None]):
    CSS = """
    #servers { width: 28; border: round $panel-lighten-2; }
    #body, TabbedContent { height: 1fr; }
    #list { width: 42%; border: round $panel-lighten-2; }
    #work { width: 1fr; }
    #form, #result { height: 1fr; border: round $panel-lighten-2; }
    #logs { height: 32%; border: round $panel-lighten-2; }
    Tabs, Tab { height: 1; }
    Underline { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, "noop", word) for key, word in zip("sth?", ("servers", "tools", "calls", "keys"), strict=True)),
        Binding("ctrl+q", "quit", "quit", priority=True),
    ]

    def compose(self) -> ComposeResult:
        yield Static("mcphost  ● 1 ready", id="top")
        with Horizontal(id="body"):
            yield OptionList("all servers", "● demo", id="servers")
            with TabbedContent():
                with TabPane("Tools"):
                    yield from self._tools()
                with TabPane("Calls"):
                    yield OptionList()
                with TabPane("Server"), VerticalScroll():
                    yield Static("No server is chosen.")
        with Vertical(id="logs"):
            yield Input(placeholder="words that must occur")
            yield RichLog()
        yield Footer(show_command_palette=False)

    def _tools(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="list"):
                yield Input(placeholder="words that must occur")
                yield OptionList(*(f"tool {n}   a tool that does something" for n in range(15)))
            with Vertical(id="work"):
                with Vertical(id="form"):
                    with VerticalScroll():
                        yield Static("Choose a tool and press enter.")
                    yield Button("run")
                with Vertical(id="result"), VerticalScroll():
                    yield Static("Nothing was called yet.")

    def on_mount(self) -> None:
        self.query_one("#list OptionList").focus()

    def action_noop(self) -> None: ...


if __name__ == "__main__":
    BareApp().run()
