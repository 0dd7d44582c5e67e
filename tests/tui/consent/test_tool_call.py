"""The dialog for a tool call: what it shows, which keys answer it, and when it closes without an answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from textual.events import Key, Paste

from mcphost.config import ServerConfig
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import RowList
from tests.conftest import SERVERS
from tests.transports.http.http_connection import Echo, Web
from tests.tui.stage import NARROW, WIDE, calls_in, echo, hostile, on_stage, servers

pytestmark = pytest.mark.slow
HI = {"text": "hi"}


def highlighted(dialog: ToolCallScreen) -> str:
    return str(dialog.query_one(RowList).item.key)  # type: ignore[union-attr]


@pytest.mark.hostile("P09")
async def test_keys_typed_before_the_dialog_could_be_read_do_nothing() -> None:
    async with on_stage(echo(), guard=60.0) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        await stage.call_dialog()
        stage.app.post_message(Paste("y\n"))
        await stage.press("y", "u", "a", "n", "p", "escape", "enter")
        assert isinstance(stage.app.screen, ToolCallScreen)
        assert call.state is CallState.ASKING
        stage.app.guard_seconds = 0.0
        stage.app.post_message(Paste("y\n"))
        await stage.pilot.pause()
        assert call.state is CallState.ASKING
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


@pytest.mark.hostile("P09")
@pytest.mark.requirement("TOOLS-11")
@pytest.mark.parametrize("letter", ["y", "u", "a", "enter"])
async def test_a_dialog_ignores_keys_soon_after_it_was_drawn(letter: str) -> None:
    """With the users' guard; a letter restarts its time."""
    async with on_stage(echo("--harmless"), guard=None) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        dialog = await stage.call_dialog()
        drawn = Key("n", "n").time - dialog.shown_for()

        async def typed(seconds: float) -> None:
            key = Key(letter, letter if len(letter) == 1 else None)
            key.time = drawn + seconds
            stage.app.post_message(key)
            await stage.pilot.pause()
            await stage.until(lambda app: not app.keys.busy)

        for moment in (0.0, 0.1, 0.25):
            await typed(moment)
            assert (call.state, stage.app.screen) == (CallState.ASKING, dialog)
        await typed(5.0)
        assert (await stage.ended(call)).state is CallState.DONE


@pytest.mark.hostile("P09")
@pytest.mark.requirement("TOOLS-19", "TOOLS-30")
@pytest.mark.parametrize(
    ("claims", "changed", "easy"),
    [
        ({}, False, "n"),
        ({"readOnlyHint": False}, False, "n"),
        ({"openWorldHint": False, "idempotentHint": True}, False, "n"),
        ({"readOnlyHint": True}, False, "y"),
        ({"readOnlyHint": True, "destructiveHint": True}, False, "y"),
        ({"destructiveHint": False}, False, "y"),
        ({"readOnlyHint": False, "destructiveHint": False}, False, "y"),
        ({"destructiveHint": True}, False, "n"),
        ({"readOnlyHint": True}, True, "n"),
        ({"destructiveHint": True}, True, "n"),
    ],
)
async def test_the_default_is_n_for_destructive_and_changed_tools(
    claims: dict[str, bool], changed: bool, easy: str
) -> None:
    """As soon as the dialog is drawn, without a key."""
    server = Echo(tools=[{"name": "echo", "inputSchema": {"type": "object"}, "annotations": claims}])
    with Web(server) as web:
        async with on_stage(servers(a=ServerConfig(url=web.url))) as stage:
            await stage.ready()
            if changed:
                first = stage.call("echo", HI)
                await stage.call_dialog()
                await stage.press("u")
                await stage.ended(first)
                server.tools[0] = {**server.tools[0], "description": "And more."}
                await stage.host.servers["a"].relist()
            call = stage.call("echo", HI)
            assert highlighted(await stage.call_dialog()) == easy
            await stage.press("enter")
            assert (await stage.ended(call)).state is (CallState.DECLINED if easy == "n" else CallState.DONE)


ANSWERS = [
    ("y", CallState.DONE, [], 1),
    ("enter", CallState.DONE, [], 1),
    ("u", CallState.DONE, ["session"], 1),
    ("a", CallState.DONE, ["always"], 1),
    ("n", CallState.DECLINED, [], 0),
]


@pytest.mark.requirement("TOOLS-11", "TOOLS-29", "HOST-04", "SEC-01")
@pytest.mark.parametrize(("key", "state", "grants", "sent"), ANSWERS, ids=[answer[0] for answer in ANSWERS])
async def test_a_key_answers_and_the_server_sees_only_what_was_allowed(
    tmp_path: Path, key: str, state: CallState, grants: list[str], sent: int
) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--harmless", "--record", record)) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        await stage.call_dialog()
        assert not calls_in(record)
        await stage.press(key)
        assert (await stage.ended(call)).state is state
        await stage.gone()
        assert [grant.lifetime.value for grant in stage.host.consent.approvals.grants()] == grants
        assert [params["arguments"] for params in calls_in(record)].count(HI) == sent


async def test_leaving_a_question_neither_answers_it_nor_quits(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record)) as stage:
        await stage.ready()
        for number, key in enumerate(("escape", "p"), 1):
            call = stage.call("echo", HI)
            await stage.call_dialog()
            await stage.press(key)
            await stage.gone()
            assert stage.app.is_running
            assert call.state is CallState.ASKING
            await stage.shows(f"{number} waiting for you" if number > 1 else "· f2")
        assert not calls_in(record)


@pytest.mark.hostile("P10")
async def test_a_destructive_tool_defaults_to_n_without_always() -> None:
    async with on_stage() as stage:
        await stage.ready()
        call = stage.call("tear_out_pages")
        dialog = await stage.call_dialog()
        assert highlighted(dialog) == "n"
        assert "destructive" in stage.text
        assert "not offered" in stage.text
        await stage.press("a")
        assert call.state is CallState.ASKING
        await stage.press("enter")
        assert (await stage.ended(call)).state is CallState.DECLINED


@pytest.mark.hostile("P10")
@pytest.mark.requirement("TOOLS-19")
async def test_always_is_offered_for_a_tool_without_claims_once_it_has_run() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        first = stage.call("echo", HI)
        assert highlighted(await stage.call_dialog()) == "n"
        await stage.shows("not offered: allow it once first, since it may be destructive")
        await stage.press("a")
        assert first.state is CallState.ASKING
        await stage.press("w", "a")
        assert first.state is CallState.ASKING
        await stage.press("escape", "escape", "y")
        assert (await stage.ended(first)).state is CallState.DONE
        again = stage.call("echo", HI)
        assert highlighted(await stage.call_dialog()) == "n"
        await stage.press("a")
        assert (await stage.ended(again)).state is CallState.DONE
        assert [grant.lifetime.value for grant in stage.host.consent.approvals.grants()] == ["always"]


@pytest.mark.hostile("P07")
@pytest.mark.requirement("TOOLS-19")
async def test_a_claim_is_named_as_one_and_no_claim_is_no_promise() -> None:
    async with on_stage() as stage:
        await stage.ready()
        for tool, words in (("ships_in_sight", "read-only"), ("feed_gulls", "nothing (so it may write, delete")):
            call = stage.call(tool, {})
            await stage.call_dialog()
            await stage.shows(words)
            await stage.press("n")
            await stage.ended(call)


@pytest.mark.hostile("P03")
@pytest.mark.requirement("TOOLS-30")
async def test_a_changed_definition_is_asked_about_with_a_diff() -> None:
    async with on_stage() as stage:
        await stage.ready()
        flash = {"message": "ahoy", "times": 1}
        call = stage.call("flash_lamp", flash)
        await stage.call_dialog()
        await stage.press("u")
        assert (await stage.ended(call)).state is CallState.DONE
        again = stage.call("flash_lamp", flash)
        assert (await stage.ended(again)).state is CallState.DONE
        fit = stage.call("fit_lens", {"lens": "fourth-order"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(fit)
        await stage.until(lambda app: "fourth" in (app.host.catalog.tool("demo", "flash_lamp").description or ""))
        call = stage.call("flash_lamp", flash)
        dialog = await stage.call_dialog()
        assert highlighted(dialog) == "n"
        assert "CHANGED since you allowed it a moment ago" in stage.text
        for line in ("description", "- Flashes", "The fourth-order lens is in.", "times.maximum", "- 3", "+ 6"):
            assert line in stage.flat
        await stage.press("n")
        await stage.ended(call)


LONG = "\n".join(f"line {number}" for number in range(30)) + "\nrm -rf /"


LOG = {"keeper": "Ana", "entry": "Fog."}


@pytest.mark.parametrize("size", [NARROW, (120, 36)])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("brew_storm", {"lines": 16, "on_stderr": 4, "seconds": 2}), ("put_out_light", {}), ("keep_logbook", LOG)],
)
async def test_the_first_frame_of_a_dialog_is_its_last_one(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], tool: str, arguments: dict[str, object]
) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        frames: list[str] = []

        def painted() -> None:
            if isinstance(stage.app.screen, ToolCallScreen):
                frames.append(stage.text)

        monkeypatch.setattr(stage.app, "post_display_hook", painted)
        stage.call(tool, arguments)
        dialog = await stage.call_dialog()
        await stage.until(lambda _: dialog.what.reached and dialog.block.reached)
        await stage.pilot.pause()
        top = dialog.query_one(".dialog").region.y  # what is behind it may still change
        dialogs = {tuple(frame.split("\n")[top:]) for frame in frames}
        assert dialogs == {tuple(stage.text.split("\n")[top:])}
        assert "scroll to the end" not in stage.text
        monkeypatch.undo()
        await stage.press("n")


@pytest.mark.hostile("P08", "T12")
@pytest.mark.requirement("TOOLS-14")
async def test_long_arguments_must_be_read_and_leave_the_answers_shown() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": LONG})
        await stage.call_dialog()
        await stage.shows("scroll to the end", "don't run", "decide later")
        assert "rm -rf" not in stage.text
        await stage.press("y", "u", "a")
        assert call.state is CallState.ASKING
        await stage.press(*["space"] * 12)
        await stage.until(lambda _: "scroll to the end" not in stage.text)
        assert "rm -rf /" in stage.text
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


@pytest.mark.hostile("P03")
@pytest.mark.requirement("TOOLS-14", "TOOLS-30")
async def test_a_changed_definition_is_read_even_for_a_written_call() -> None:
    server = Echo(tools=[{"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}])
    with Web(server) as web:
        async with on_stage(servers(a=ServerConfig(url=web.url)), size=NARROW) as stage:
            await stage.ready()
            first = stage.call("echo", HI)
            await stage.call_dialog()
            await stage.press("u")
            await stage.ended(first)
            server.tools[0] = {**server.tools[0], "description": f"{LONG}\nAnd it sends mail."}
            await stage.host.servers["a"].relist()
            call = stage.host.tool_calls.call("a", "echo", HI, composed=True)
            await stage.call_dialog()
            await stage.press("y")
            assert call.state is CallState.ASKING
            assert "sends mail" not in stage.flat
            await stage.press(*["space"] * 20)
            await stage.until(lambda _: "scroll to the end" not in stage.text)
            await stage.press("y")
            assert (await stage.ended(call)).state is CallState.DONE


@pytest.mark.parametrize("height", [12, 16, 20])
async def test_no_answer_is_cut_off_on_a_low_screen(height: int) -> None:
    async with on_stage(echo(), size=(80, height)) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": LONG, **dict.fromkeys("abcdefgh", "x")})
        await stage.call_dialog()
        await stage.shows("scroll to the end (space) to enable y", "don't run", "later")
        assert stage.text.rstrip().endswith("asked by you ─╯")
        await stage.press("n")
        await stage.ended(call)


async def test_a_locked_key_says_for_a_moment_what_to_press_first() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": LONG})
        await stage.call_dialog()
        for key in ("y", "u", "w"):
            await stage.press(key)
            await stage.shows("space first: there is more to read")
        assert call.state is CallState.ASKING
        await stage.press("n")


async def test_facts_below_a_long_path_must_be_read_too(tmp_path: Path) -> None:
    words = "a folder with spaces, Ünïcode and a name "
    long = tmp_path / (words * 4).strip() / (words * 2).strip()
    long.parent.mkdir()
    long.symlink_to(SERVERS)
    entry = ServerConfig(command=sys.executable, args=("-S", "-E", str(long / "echo.py"), "--name", "other"))
    async with on_stage(servers(echo=entry), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hi"})
        await stage.call_dialog()
        await stage.shows('"text"  hi', "scroll to the end (space) to enable y", "decide later")
        await stage.press("y")
        assert call.state is CallState.ASKING
        await stage.press("space", "space", "space")
        await stage.shows(f"'{long}/echo.py' --name other")
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


@pytest.mark.hostile("P08")
async def test_a_long_argument_is_read_in_the_reader() -> None:
    async with on_stage(echo(), size=WIDE) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "word " * 4200 + "the end"})
        await stage.call_dialog()
        await stage.press(*["space"] * 8)
        await stage.shows("too long to show here")
        await stage.press("y")
        assert call.state is CallState.ASKING
        await stage.press("v")
        await stage.at(ReaderScreen)
        await stage.press("escape")
        await stage.shows("too long to show here")
        await stage.press("v")
        await stage.at(ReaderScreen)
        await stage.press("end")
        await stage.shows("the end")
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


PADDED = [
    ("ls" + " " * 5000 + "rm", "ls ␣×5000 rm"),
    ("ls" + "\n" * 60 + "rm", "ls ⏎×60 rm"),
    ("ls" + " \n" * 60 + "rm", "⏎×60 rm"),
    ("ls" + "\t" * 50 + "rm", "ls →×50 rm"),
    ("a\u200bb\U000e0041", "a⟨U+200B⟩b⟨U+E0041⟩ (2 invisible characters)"),
    ("a\u202eb", "a⟨U+202E⟩b"),
    ("a\x1b[2Jb", "a␛[2Jb"),
    ("[DELETES ALL FILES] [/b]", "[DELETES ALL FILES] [/b]"),
]


@pytest.mark.hostile("P08", "T08", "T09", "T10")
@pytest.mark.requirement("TOOLS-14", "SEC-08")
@pytest.mark.parametrize(("text", "words"), PADDED, ids=[words for _, words in PADDED])
async def test_what_hides_in_arguments_is_visible_and_counted(text: str, words: str) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": text})
        await stage.call_dialog()
        assert words in stage.flat
        await stage.press("n")
        await stage.ended(call)


async def test_edited_arguments_are_marked_and_are_what_is_sent(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record)) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        await stage.call_dialog()
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        await stage.write(" you")
        await stage.press("escape")
        await stage.call_dialog()
        assert "edited by you" not in stage.text
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        assert stage.text.count("ctrl+r") == 1
        await stage.press("end")
        await stage.write(" there")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.shows("edited by you", "hi there")
        await stage.press("y")
        await stage.ended(call)
        assert call.edited
        assert calls_in(record)[0]["arguments"] == {"text": "hi there"}


@pytest.mark.hostile("P08")
async def test_arguments_edited_into_long_ones_are_read_again() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        dialog = await stage.call_dialog()
        await dialog._use_arguments({"text": LONG})
        await stage.shows("scroll to the end")
        await stage.press("y")
        assert call.state is CallState.ASKING
        await stage.press("n")
        await stage.ended(call)


@pytest.mark.hostile("P01")
async def test_the_definition_is_one_key_away_and_esc_comes_back() -> None:
    async with on_stage() as stage:
        await stage.ready()
        call = stage.call("flash_lamp", {"message": "x", "times": 1})
        await stage.call_dialog()
        await stage.press("d")
        await stage.at(ReaderScreen)
        await stage.shows('"inputSchema"', '"maxLength": 80')
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("n")
        assert (await stage.ended(call)).state is CallState.DECLINED


async def test_the_dialog_goes_when_its_call_is_cancelled() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        for above in (None, "d", "e", "v", "w", "question_mark"):
            call = stage.call("echo", HI)
            await stage.call_dialog()
            if above:
                await stage.press(above)
                await stage.until(lambda app: len(app.screen_stack) == 3)
            call.cancel()
            await stage.gone()
            await stage.shows("was withdrawn")
            stage.app.clear_notifications()
            assert call.state is CallState.CANCELLED


async def test_the_dialog_goes_when_its_server_dies() -> None:
    async with on_stage(hostile("crash-on-call", "--kind", "exit")) as stage:
        await stage.ready()
        crash, call = stage.call("act"), stage.call("act")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(crash)
        await stage.ended(call)
        await stage.gone()
        assert call.state.ended
        assert call.sent_at is None


@pytest.mark.hostile("P09")
async def test_several_questions_are_asked_one_after_the_other() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        calls = [stage.call("echo", {"text": f"number {n}"}) for n in range(3)]
        for n, call in enumerate(calls):
            await stage.call_dialog()
            await stage.shows(f"number {n}")
            if n < 2:
                assert ("2 waiting for you" if n == 0 else "· f2") in stage.top
            await stage.press("y")
            await stage.ended(call)
        await stage.gone()


async def test_a_question_waits_until_what_one_reads_is_closed() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        for screen in ("question_mark", "f2", "g", "d", "ctrl+p"):
            await stage.press(screen)
            await stage.until(lambda app: len(app.screen_stack) == 2)
            call = stage.call("echo", HI)
            await stage.until(lambda app: app.approver.open)
            assert not isinstance(stage.app.screen, ToolCallScreen)
            await stage.press("escape")
            await stage.call_dialog()
            await stage.press("n")
            await stage.ended(call)


async def test_quitting_with_open_questions_sends_nothing(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record)) as stage:
        await stage.ready()
        calls = [stage.call("echo", HI) for _ in range(3)]
        await stage.call_dialog()
        await stage.press("ctrl+q")
        assert not stage.app.is_running
    assert all(call.state is CallState.CANCELLED for call in calls)
    assert not calls_in(record)
    assert record.read_text().splitlines()[-1] == "EOF"


@pytest.mark.requirement("PING-01")
async def test_a_ping_is_answered_behind_the_dialog() -> None:
    server = Echo()
    with Web(server) as web:
        async with on_stage(servers(web=ServerConfig(url=web.url))) as stage:
            await stage.ready()
            call = stage.call("echo", HI)
            await stage.call_dialog()
            server.lines[0].events({"jsonrpc": "2.0", "id": "there?", "method": "ping"})
            answer = {"jsonrpc": "2.0", "id": "there?", "result": {}}
            await stage.until(lambda _: answer in [visit.message for visit in web.seen("POST")])
            assert call.state is CallState.ASKING


@pytest.mark.requirement("TOOLS-14")
async def test_arguments_just_typed_need_not_be_read_to_run_once() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("echo")
        await stage.pilot.pause()
        stage.app.main.tools.query_one(SchemaForm).focus_first()
        stage.app.post_message(Paste(LONG))
        await stage.until(lambda _: "rm -rf" in str(stage.app.main.tools.query_one(SchemaForm).values()))
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.shows("scroll to the end (space) to enable all answers")
        await stage.press("u", "a")
        await stage.call_dialog()
        await stage.press("y")
        assert (await stage.ended()).state is CallState.DONE
        call = stage.call("echo", {"text": LONG})
        await stage.call_dialog()
        await stage.press("y")
        assert call.state is CallState.ASKING
        await stage.press("n")


async def test_a_tool_without_arguments_has_nothing_to_edit() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        stage.call("tear_out_pages")
        await stage.call_dialog()
        assert "edit the arguments" not in stage.text
        await stage.press("e")
        assert isinstance(stage.app.screen, ToolCallScreen)
        await stage.press("n")


async def test_arrows_work_again_once_the_list_has_room() -> None:
    async with on_stage(echo("--harmless"), size=WIDE) as stage:
        await stage.ready()
        stage.call("echo", {"text": "x"})
        dialog = await stage.call_dialog()
        for size in ((80, 18), WIDE):
            await stage.pilot.resize_terminal(*size)
        await stage.press("down")
        assert dialog.answers.has_focus
        assert dialog.answers.highlighted == 1
