"""Reloads the configuration: reads the file, shows the changes, and applies those that the user agrees to.

Each server that would run something else, or get other credentials, is a question of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.worker import Worker

from mcphost.config import UI, Changes, Config, compare
from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.modal_screen import HELP_BINDING, AskScreen
from mcphost.tui.start_info import ReloadedConfig

LONGEST = 4000
"""Characters of a command that are shown; no entry that a person wrote is longer."""

Read = Callable[[], ReloadedConfig]
"""Reads the configuration. Blocks on the disk; raises ConfigError."""


async def reload(app: App[None], host: Host, read: Read, apply_ui: Callable[[UI, UI], None]) -> None:
    """Read the file, show the changes, and apply them if the user agrees.

    ``apply_ui`` gets ``[ui]`` as it was and as it is now. For another profile than the one in use, all changes are one
    question: the user asked for them.
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
    reloading = _Reload(app, host, apply_ui, fresh.config)
    if fresh.config.profile != before.profile:
        reloading.ask_at_once(changes)
    elif changes:
        reloading.ask(changes)
    else:
        app.notify("The configuration has not changed.")


class _Reload:
    """Asks about the changes from one configuration to another, and applies what the user agrees to."""

    def __init__(self, app: App[None], host: Host, apply_ui: Callable[[UI, UI], None], fresh: Config) -> None:
        self._app, self._host, self._apply_ui = app, host, apply_ui
        self._before, self._fresh = host.config, fresh
        self._asked: list[str] = []
        """Servers that are still to be asked about."""

    def ask(self, changes: Changes) -> None:
        self._asked = [name for name in changes.changed if name in changes.needs_consent]
        harmless = {name: fields for name, fields in changes.changed.items() if name not in changes.needs_consent}
        others = replace(changes, changed=harmless)
        if others:
            self._app.push_screen(ReloadScreen(others, self._before, self._fresh, len(self._asked)), self._agreed)
        else:
            self._ask_next()

    def ask_at_once(self, changes: Changes) -> None:
        """Ask one question about all changes, and none where nothing but the profile changes."""
        if changes:
            self._app.push_screen(ReloadScreen(changes, self._before, self._fresh), self._agreed)
        else:
            self._ask_next()

    def _agreed(self, agreed: bool | None) -> None:
        if agreed:
            self._ask_next()

    def _ask_next(self) -> None:
        if self._asked:
            screen = ServerChangedScreen(self._asked[0], self._before, self._fresh)
            self._app.push_screen(screen, self._answered)
        elif self._fresh != self._before:
            _: Worker[None] = self._app.run_worker(self._apply, exclusive=True)

    def _answered(self, agreed: bool | None) -> None:
        name = self._asked.pop(0)
        if not agreed:  # this one goes on as it is
            servers = {**self._fresh.servers, name: self._before.servers[name]}
            self._fresh = self._fresh.model_copy(update={"servers": servers})
        self._ask_next()

    async def _apply(self) -> None:
        before = self._host.config
        await self._host.apply(self._fresh)
        self._apply_ui(before.ui, self._fresh.ui)


class ServerChangedScreen(AskScreen, inherit_bindings=False):
    """Dismissed with True to go over to the changed entry of one server."""

    HELP = (
        "This server's entry would run something else now, or give it something else.\n"
        "The command or address is shown in full, as it is and as it would be."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "change", id="reload.change", tooltip="Go over to the changed entry"),
        Binding("n,escape", "close(False)", "leave", id="reload.keep", tooltip="Let this server go on as it is"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ServerChangedScreen { & > .dialog { max-height: 80%; } }
    """

    def __init__(self, name: str, old: Config, new: Config) -> None:
        facts = list(_change_facts(name, old, new))
        super().__init__(f"{name} changed in the configuration", facts, "change it", "leave it as it is", labels=12)


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
    """Dismissed with True to apply the changes. ``asked_next`` servers are questions of their own."""

    HELP = (
        "The configuration file changed. What is listed here happens when you apply it; other servers go on.\n"
        "Commands are shown in full, because applying starts them."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "apply", id="reload.apply", tooltip="Go over to the new configuration"),
        Binding("n,escape", "close(False)", "leave", id="reload.leave", tooltip="Go on as before"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ReloadScreen { & > .dialog { max-height: 80%; } }
    """

    def __init__(self, changes: Changes, old: Config, new: Config, asked_next: int = 0) -> None:
        facts = list(_facts(changes, old, new))
        if asked_next:
            each = "server that changed is" if asked_next == 1 else "servers that changed are"
            facts.append(fact("", f"{asked_next} more {each} asked about next", "$foreground-muted"))
        title = "The configuration changed"
        if old.profile != new.profile:
            title = f"Change to the profile {new.profile}?" if new.profile else f"Leave the profile {old.profile}?"
        super().__init__(title, facts, "apply", "leave it as it is", labels=18)


def _facts(changes: Changes, old: Config, new: Config) -> Iterator[Fact]:
    for name in changes.added:
        yield fact(f"+ {name}", _what_runs(new, name), "$text-success")
    for name in changes.removed:
        yield fact(f"- {name}", "removed (stopped)", "$text-error")
    for name, fields in changes.changed.items():
        yield fact(f"~ {name}", f"{', '.join(fields)}\n{_what_runs(new, name)}")
    for section in changes.sections:
        yield fact(f"~ [{section}]", _changed_ui(old.ui, new.ui) if section == "ui" else "changed")


def _change_facts(name: str, old: Config, new: Config) -> Iterator[Fact]:
    before, after = old.servers[name], new.servers[name]
    fields = [key for key in type(after).model_fields if getattr(before, key) != getattr(after, key)]
    yield fact("changed", ", ".join(fields))
    if before.identity != after.identity:
        yield fact("now", show(before.identity, limit=LONGEST))
        yield fact("would run", show(after.identity, limit=LONGEST), "$text-warning")
        yield fact("", "What you allowed of its tools is asked about again.", "$foreground-muted")
    else:
        yield fact("runs", show(after.identity, limit=LONGEST))
    if after.cwd:
        yield fact("in", show_line(after.cwd))
    if after.oauth.assertion is not None:
        yield fact("signed in by", f"the JWT of {show(after.oauth.assertion.words, limit=LONGEST)}", "$text-warning")
    if given := [*after.env, *after.env_vars, *after.http_headers, *after.env_http_headers]:
        yield fact("given", show_line(", ".join(given), 400))


def _changed_ui(old: UI, new: UI) -> str:
    fields = [name for name in UI.model_fields if getattr(old, name) != getattr(new, name)]
    return ", ".join(f"{name} (from the next start)" if name == "mouse" else name for name in fields)


def _what_runs(config: Config, name: str) -> str:
    server = config.servers[name]
    words = [f"would run: {show(server.identity, limit=LONGEST)}"]
    if server.cwd:
        words.append(f"in {show_line(server.cwd)}")
    variables = [*server.env, *server.env_vars, *server.http_headers, *server.env_http_headers]
    if variables:
        words.append(f"given {show_line(', '.join(variables), 400)}")
    if server.oauth.assertion is not None:
        words.append(f"signed in by the JWT of {show(server.oauth.assertion.words, limit=LONGEST)}")
    return "\n".join(words)
