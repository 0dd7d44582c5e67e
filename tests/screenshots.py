"""Writes `screenshots/` from the real app on the demo server: ``python -m tests.screenshots [NAME…]``.

The pictures of the README are PNGs, since pages of packages do not show SVG; Chromium draws them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from PIL import Image
from textual.pilot import Pilot

from mcphost.composition import demo_config, dependencies, values_for
from mcphost.config import Config
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.kit.modal_screen import Dialog
from mcphost.tui.start_info import StartInfo

FOLDER: Final = Path(__file__).resolve().parents[1] / "screenshots"
WIDE: Final = (140, 40)
SMALL: Final = (80, 24)
README: Final = (110, 34)

Story = Callable[[Pilot[None]], Awaitable[None]]


async def until(pilot: Pilot[None], condition: Callable[[McphostApp], object], seconds: float = 40.0) -> None:
    """Let the app work until the condition holds of it."""
    app = pilot.app
    assert isinstance(app, McphostApp)
    async with asyncio.timeout(seconds):
        while not condition(app):
            await pilot.pause(0.02)
    await pilot.pause()


async def open_tool(pilot: Pilot[None], words: str) -> None:
    """Filter the tools by these words and open the best match."""
    await pilot.press("t", "slash", *("underscore" if letter == "_" else letter for letter in words))
    await pilot.press("enter")
    await pilot.pause()


async def ask(pilot: Pilot[None]) -> None:
    """Run what the form holds, as far as the dialog."""
    await pilot.press("ctrl+r")
    await until(pilot, lambda app: isinstance(app.screen, Dialog))


async def run(pilot: Pilot[None]) -> None:
    """Run what the form holds, and wait for the answer."""
    await ask(pilot)
    await pilot.press("y")
    await until(pilot, lambda app: not app.host.tool_calls.running())


async def main_story(pilot: Pilot[None]) -> None:
    """A structured result beside its tool."""
    await open_tool(pilot, "ships_in_sight")
    await run(pilot)


async def dialog_story(pilot: Pilot[None]) -> None:
    """A destructive tool, asked about."""
    await open_tool(pilot, "tear_out_pages")
    await pilot.press("tab")
    await ask(pilot)


async def changed_story(pilot: Pilot[None]) -> None:
    """A tool that was allowed, and has changed since."""
    await open_tool(pilot, "flash_lamp")
    await ask(pilot)
    await pilot.press("space", "u")
    await until(pilot, lambda app: not app.host.tool_calls.running())
    await open_tool(pilot, "fit_lens")
    await run(pilot)
    await open_tool(pilot, "flash_lamp")
    await ask(pilot)


async def form_story(pilot: Pilot[None]) -> None:
    """A form with every kind of field."""
    await open_tool(pilot, "keep_logbook")


async def list_story(pilot: Pilot[None]) -> None:
    """The list of tools."""
    await pilot.press("t")


async def logs_story(pilot: Pilot[None]) -> None:
    """The logs after a storm."""
    await open_tool(pilot, "brew_storm")
    await run(pilot)
    await pilot.press("f3")
    await pilot.pause()


async def card_story(pilot: Pilot[None]) -> None:
    """The server's card."""
    await pilot.press("s", "down", "enter")
    await pilot.pause()


async def traffic_story(pilot: Pilot[None]) -> None:
    """The messages of a call."""
    await open_tool(pilot, "ships_in_sight")
    await run(pilot)
    await pilot.press("f4", "escape")
    await pilot.pause()


async def asking_story(pilot: Pilot[None]) -> None:
    """A form that the server asks to be filled in."""
    await open_tool(pilot, "sign_guest_book")
    await asked_back(pilot)


async def model_story(pilot: Pilot[None]) -> None:
    """A server that asks for a model, which is the user."""
    await open_tool(pilot, "write_verse")
    await asked_back(pilot)


async def asked_back(pilot: Pilot[None]) -> None:
    """Run what the form holds, as far as the dialog of what the server wants for it."""
    await ask(pilot)
    dialog = pilot.app.screen
    await pilot.press("space", "space", "y")
    await until(pilot, lambda app: isinstance(app.screen, Dialog) and app.screen is not dialog)
    await pilot.pause(0.1)


async def gate_story(pilot: Pilot[None]) -> None:
    """Two agents, and a call that one of them waits for."""
    from tests.tui.agents.sessions import ask, claude, connect  # late: it imports this module

    app = pilot.app
    assert isinstance(app, McphostApp)
    folder = "/home/ada/lighthouse"
    codex = {"label": "codex", "claimed": "codex-mcp-client", "version": "0.171.0", "given": "codex"}
    await connect(app.host, claude(**codex, pid=4888, program="/usr/bin/codex", folder=folder))
    agent, _ = await connect(app.host, claude(folder=folder))
    await until(pilot, lambda app: app.main.agents is not None)
    ask(agent, within=1500.0)
    await until(pilot, lambda app: isinstance(app.screen, Dialog))


async def skill_story(pilot: Pilot[None]) -> None:
    """A skill, its files, and the verified text of one."""
    await until(pilot, lambda app: app.main.has_skills)
    await pilot.press("I", "enter")
    await until(
        pilot, lambda app: app.main.skills and app.main.skills.view.reading and app.main.skills.view.reading.is_read
    )


async def help_story(pilot: Pilot[None]) -> None:
    """The keys."""
    await pilot.press("question_mark")
    await pilot.pause()


SHOTS: Final[dict[str, tuple[Story, tuple[int, int]]]] = {
    "main": (main_story, WIDE),
    "dialog": (dialog_story, WIDE),
    "changed-tool": (changed_story, README),
    "form": (form_story, WIDE),
    "logs": (logs_story, WIDE),
    "card": (card_story, WIDE),
    "traffic": (traffic_story, WIDE),
    "asked-form": (asking_story, WIDE),
    "asked-model": (model_story, WIDE),
    "gate": (gate_story, README),
    "skill": (skill_story, WIDE),
    "help": (help_story, WIDE),
    "small-list": (list_story, SMALL),
    "small-form": (form_story, SMALL),
    "small-dialog": (dialog_story, SMALL),
    "small-result": (main_story, SMALL),
}


SIGN_INS: Final = {"sign-in": WIDE, "small-sign-in": SMALL}
CHATS: Final = {"chat": WIDE, "small-chat": SMALL}
PNGS: Final = ("main", "changed-tool", "gate")


async def shoot_sign_in(name: str, size: tuple[int, int], folder: Path) -> None:
    """Play a sign-in as far as its question."""
    from tests.tui.sign_in.sign_ins import (  # late: it imports this module
        ScriptedPort,
        at_sign_in,
        signing,
    )

    with tempfile.TemporaryDirectory() as state, contextlib.chdir(state):
        async with signing(ScriptedPort(), size=size) as stage:
            await at_sign_in(stage)
            await stage.shows("don't sign in")
            await stage.pilot.pause(0.1)
            (folder / f"{name}.svg").write_text(local_fonts(stage.app.export_screenshot(title="mcphost")))


async def shoot_chat(name: str, size: tuple[int, int], folder: Path) -> None:
    """Play a conversation as far as the question about its second call."""
    from tests.host.chat.scripted_model import text, use, uses  # late: they import this module
    from tests.tui.chat.chats import chatting

    ships = uses(use("demo__ships_in_sight", "u1"), say="I look through the telescope.")
    horn = uses(use("demo__sound_foghorn", "u2", blasts=2), say="Two are close, and **fog** comes up: I warn them.")
    with tempfile.TemporaryDirectory() as state, contextlib.chdir(state):
        servers = {"demo": portable_demo().servers["demo"].model_dump(exclude_unset=True)}
        async with chatting(ships, horn, text("done"), servers=servers, size=size) as stage:
            await stage.say("Who is out there, and is anybody in danger?")
            await stage.call_dialog()
            await stage.press("space", "space", "y")
            await stage.shows("Run Sound")
            await stage.pilot.pause(0.2)
            (folder / f"{name}.svg").write_text(local_fonts(stage.app.export_screenshot(title="mcphost")))


async def shoot_import(folder: Path) -> None:
    """Look at the servers of other programs, and at one that brings a secret."""
    from tests.tui.imports.homes import claude_code, cursor, importing_stage, vscode  # late: as above

    token = {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd"}
    files = ["-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/home/ada/notes"]
    github = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": token}
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(home), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home)
        for name in ("CONFIG", "STATE", "DATA", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", f"{home}/.{name.lower()}")
        claude_code(github=github, files={"command": "npx", "args": files, "autoApprove": ["read_file"]})
        vscode(sentry={"type": "http", "url": "https://mcp.sentry.dev/mcp"})
        cursor(git={"command": "uvx", "args": ["mcp-server-git"]}, github=github)
        async with importing_stage(size=WIDE) as stage:
            await stage.ready()
            await stage.open_found_servers()
            await stage.pilot.pause(0.2)
            (folder / "import.svg").write_text(local_fonts(stage.app.export_screenshot(title="mcphost")))
            await stage.press("enter")
            await stage.asked()
            await stage.pilot.pause(0.2)
            (folder / "import-server.svg").write_text(local_fonts(stage.app.export_screenshot(title="mcphost")))
            await stage.press("escape")


async def shoot(name: str, story: Story, size: tuple[int, int], folder: Path) -> None:
    """Play one story on a fresh app and write what the screen shows at its end."""
    config, approver = portable_demo(), ScreenApprover()
    with tempfile.TemporaryDirectory() as state:
        parts = dependencies(approver, values_for(config, os.environ), state=Path(state), answers=SCREEN_KINDS)
        async with Host(config, parts) as host:
            app = McphostApp(host, approver, StartInfo(None, True, (), Path(state), ""))
            app.guard_seconds = 0.0
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda app: app.host.servers["demo"].ready)
                await pilot.pause(0.1)
                await story(pilot)
                await pilot.pause(0.1)
                (folder / f"{name}.svg").write_text(local_fonts(app.export_screenshot(title="mcphost")))


def portable_demo() -> Config:
    """The demo, started by a name that is the same on every machine."""
    demo = demo_config().servers["demo"]
    return Config.model_construct(servers={"demo": demo.model_copy(update={"command": "python3"})})


def local_fonts(svg: str) -> str:
    """The picture without its reference to a font on the network."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def write_png(svg: Path) -> None:
    """Draw a picture with Chromium, if there is one, and keep the PNG in its place."""
    if (chromium := shutil.which("chromium")) is None:
        print(f"{svg} stays as it is: chromium is not installed")
        return
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text())
    assert box is not None
    size = ",".join(str(round(float(side))) for side in box.groups())
    png = svg.with_suffix(".png")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        options += ["--default-background-color=00000000", f"--window-size={size}", f"--screenshot={png}"]
        subprocess.run([chromium, *options, svg.as_uri()], check=True, capture_output=True, timeout=60)
    Image.open(png).quantize(128).save(png, optimize=True)
    svg.unlink()


async def main(names: list[str]) -> None:
    """Write the pictures of these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    shots: dict[str, Callable[[], Awaitable[None]]] = {
        name: partial(shoot, name, story, size, FOLDER) for name, (story, size) in SHOTS.items()
    }
    shots |= {name: partial(shoot_sign_in, name, size, FOLDER) for name, size in SIGN_INS.items()}
    shots |= {name: partial(shoot_chat, name, size, FOLDER) for name, size in CHATS.items()}
    shots["import"] = partial(shoot_import, FOLDER)
    for name in names or shots:
        await shots[name]()
        if name in PNGS:
            await asyncio.to_thread(write_png, FOLDER / f"{name}.svg")
        print(f"screenshots/{name}")


if __name__ == "__main__":
    os.environ.update(TEXTUAL_ANIMATIONS="none", MCPHOST_KEYCHAIN="off", TERM="xterm-256color", COLORTERM="truecolor")
    os.environ.pop("NO_COLOR", None)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asyncio.run(main(sys.argv[1:]))
