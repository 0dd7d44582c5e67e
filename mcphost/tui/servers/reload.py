"""Going over to a changed configuration file: read, shown, and applied where the user says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from mcphost.config import UI, Changes, Config, compare
from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.host.start_info import ReloadedConfig
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.modal import KEYS

Read = Callable[[], ReloadedConfig]
"""Reads the configuration; waits for the disk. Raises ConfigError."""


async def reload(app: App[None], host: Host, read: Read, apply_ui: Callable[[UI, UI], None]) -> None:
    """Read the file again, show what would change, and apply it if the user agrees.

    ``apply_ui`` gets ``[ui]`` as it was and as it is now.
    """
    try:
        fresh = await asyncio.to_thread(read)
    except McphostError as error:
        app.notify(show(str(error)), title="Nothing was changed", severity="error", timeout=20, markup=False)
        return
    for problem in fresh.problems:
        app.notify(show(problem), title="Configuration", severity="warning", timeout=20, markup=False)
    before = host.config
    changes = compare(before, fresh.config)
    if not changes:
        app.notify("The configuration is as it was.")
        return

    if await app.push_screen_wait(ReloadScreen(changes, before, fresh.config)):
        await host.apply(fresh.config)
        apply_ui(before.ui, fresh.config.ui)


class ReloadScreen(ModalScreen[bool]):
    """Shows the difference; dismissed with True when it is to be applied."""

    HELP = (
        "The configuration file changed. What is listed here happens when you apply it; other servers go on.\n"
        "Commands are shown in full, because applying starts them."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "apply", id="reload.apply", tooltip="Go over to the new configuration"),
        Binding("n,escape", "close(False)", "leave", id="reload.leave", tooltip="Go on as before"),
        KEYS,
    ]

    DEFAULT_CSS = """
    ReloadScreen {
        align: center bottom;
        background: $background 40%;
        & > VerticalScroll {
            width: 100%; max-width: 140; height: auto; max-height: 80%;
            border: round $border; background: $surface; padding: 0 1;
        }
    }
    """

    def __init__(self, changes: Changes, old: Config, new: Config) -> None:
        super().__init__()
        self._changes, self._old, self._new = changes, old, new

    def compose(self) -> ComposeResult:
        """The list in a frame."""
        with VerticalScroll() as frame:
            frame.border_title = "The configuration changed"
            frame.border_subtitle = "y apply · n leave it as it is"
            yield FactsTable(list(_facts(self._changes, self._old, self._new)), labels=18)

    def action_close(self, apply: bool) -> None:
        self.dismiss(apply)


def _facts(changes: Changes, old: Config, new: Config) -> Iterator[Fact]:
    for name in changes.added:
        yield fact(f"+ {name}", _what_runs(new, name), "$text-success")
    for name in changes.removed:
        yield fact(f"- {name}", "is stopped and forgotten", "$text-error")
    for name, fields in changes.changed.items():
        style = "$text-warning" if name in changes.needs_consent else ""
        yield fact(f"~ {name}", f"{', '.join(fields)}\n{_what_runs(new, name)}", style)
    for section in changes.sections:
        yield fact(f"~ [{section}]", _changed_ui(old.ui, new.ui) if section == "ui" else "changed")


def _changed_ui(old: UI, new: UI) -> str:
    fields = [name for name in UI.model_fields if getattr(old, name) != getattr(new, name)]
    return ", ".join(f"{name} (from the next start on)" if name == "mouse" else name for name in fields)


def _what_runs(config: Config, name: str) -> str:
    server = config.servers[name]
    words = [f"would run: {show(server.identity, limit=2000)}"]
    if server.cwd:
        words.append(f"in {show_line(server.cwd)}")
    given = [*server.env, *server.env_vars, *server.http_headers, *server.env_http_headers]
    if given:
        words.append(f"given {show_line(', '.join(given), 400)}")
    return "\n".join(words)
