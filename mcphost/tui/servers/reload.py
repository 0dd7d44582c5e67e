"""Reloads the configuration: reads the file, shows the changes, and applies them if the user agrees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.worker import Worker

from mcphost.config import UI, Changes, Config, compare
from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.modal import KEYS, AskScreen
from mcphost.tui.start_info import ReloadedConfig

Read = Callable[[], ReloadedConfig]
"""Reads the configuration. Blocks on the disk; raises ConfigError."""


async def reload(app: App[None], host: Host, read: Read, apply_ui: Callable[[UI, UI], None]) -> None:
    """Read the file, show the changes, and apply them if the user agrees.

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
        app.notify("The configuration has not changed.")
        return

    async def apply() -> None:
        await host.apply(fresh.config)
        apply_ui(before.ui, fresh.config.ui)

    def answered(agreed: bool | None) -> None:
        if agreed:
            _: Worker[None] = app.run_worker(apply, exclusive=True)

    app.push_screen(ReloadScreen(changes, before, fresh.config), answered)


async def take_over_servers(host: Host, read: Read, names: Collection[str], *, whole: bool) -> None:
    """Go over to the configuration's servers of these names, which the user has just agreed to.

    What else changed in it waits for `reload`, unless ``whole``: then only the demo ran until now. Raises ConfigError.
    """
    fresh = (await asyncio.to_thread(read)).config
    now = host.config
    servers = {name: each for name, each in fresh.servers.items() if name in names or name in now.servers}
    servers = {name: each if name in names else now.servers[name] for name, each in servers.items()}
    await host.apply(fresh if whole else now.model_copy(update={"servers": {**now.servers, **servers}}))


class ReloadScreen(AskScreen, inherit_bindings=False):
    """Dismissed with True to apply the changes."""

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
    ReloadScreen { & > .dialog { max-height: 80%; } }
    """

    def __init__(self, changes: Changes, old: Config, new: Config) -> None:
        facts = list(_facts(changes, old, new))
        super().__init__("The configuration changed", facts, "apply", "leave it as it is", labels=18)


def _facts(changes: Changes, old: Config, new: Config) -> Iterator[Fact]:
    for name in changes.added:
        yield fact(f"+ {name}", _what_runs(new, name), "$text-success")
    for name in changes.removed:
        yield fact(f"- {name}", "removed (stopped)", "$text-error")
    for name, fields in changes.changed.items():
        style = "$text-warning" if name in changes.needs_consent else ""
        yield fact(f"~ {name}", f"{', '.join(fields)}\n{_what_runs(new, name)}", style)
    for section in changes.sections:
        yield fact(f"~ [{section}]", _changed_ui(old.ui, new.ui) if section == "ui" else "changed")


def _changed_ui(old: UI, new: UI) -> str:
    fields = [name for name in UI.model_fields if getattr(old, name) != getattr(new, name)]
    return ", ".join(f"{name} (from the next start)" if name == "mouse" else name for name in fields)


def _what_runs(config: Config, name: str) -> str:
    server = config.servers[name]
    words = [f"would run: {show(server.identity, limit=2000)}"]
    if server.cwd:
        words.append(f"in {show_line(server.cwd)}")
    variables = [*server.env, *server.env_vars, *server.http_headers, *server.env_http_headers]
    if variables:
        words.append(f"given {show_line(', '.join(variables), 400)}")
    return "\n".join(words)
