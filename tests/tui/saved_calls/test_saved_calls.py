"""Saved calls on screen: from a form into the file, and from the list into a form or to a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config.calls import LoadedCalls, SavedCall
from mcphost.host.saved_calls import StorableArguments
from mcphost.tui.kit.facts_table import Fact
from mcphost.tui.kit.messages import SaveCallRequested
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.saved_calls.controller import proposed_name
from mcphost.tui.saved_calls.name import CallNameScreen, difference_facts, saving_facts
from mcphost.tui.saved_calls.screen import SavedCallsScreen
from tests.tui.stage import calls_in, echo, on_stage

STORM = SavedCall(name="storm", server="demo", tool="brew_storm", arguments={"lines": 9})


def plain(facts: list[Fact]) -> list[tuple[str, str]]:
    return [(each.label, each.value.plain) for each in facts]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("brew_storm", "brew_storm"),
        ("storm", "storm-2"),
        ("file:///docs/guide.md", "guide.md"),
        ("lighthouse://ships/{kind}/{name}", "name"),
        ("a=b\x1b[31m c", "a-b-[31m-c"),
        ("\u202e", "call"),
        ("x" * 100, "x" * 60),
    ],
)
def test_a_free_name_is_proposed(target: str, name: str) -> None:
    assert proposed_name(target, LoadedCalls((STORM,))) == name


def test_what_is_not_written_is_named_before_it_is_saved() -> None:
    requested = SaveCallRequested("demo", "t\x1b[2Jool", {}, unfit=("day",))
    facts = plain(list(saving_facts(requested, StorableArguments({"a": "\u202ex"}, ("token",)), Path("calls.toml"))))
    assert facts == [
        ("tool", "demo › t␛[2Jool"),
        ("arguments", "a  ⟨U+202E⟩x"),
        ("left out", "token looks secret and is not written. Add a reference to the file, such as ${keyring:NAME}."),
        ("incomplete", "day: missing or invalid, so not written"),
        ("file", "calls.toml"),
    ]


def test_a_replacement_shows_what_changes() -> None:
    after = STORM.model_copy(update={"tool": "calm", "arguments": {"more": True}})
    assert plain(list(difference_facts(STORM, after))) == [
        ("calls", "tool demo › brew_storm → tool demo › calm"),
        ("lines", "9 → nothing"),
        ("more", "nothing → true"),
    ]
    assert list(difference_facts(STORM, STORM)) == []


@pytest.mark.slow
async def test_a_call_is_saved_found_run_and_deleted(isolated: Path) -> None:
    file = isolated / "config" / "mcphost" / "calls.toml"
    async with on_stage() as stage:
        await stage.ready()
        await stage.open_tool("storm")
        await stage.press("ctrl+s")
        await stage.at(CallNameScreen)
        await stage.shows("demo › brew_storm", "lines 16", "~/config/mcphost/calls.toml")
        await stage.write("tonight")
        await stage.press("enter")
        await stage.until(lambda _: "Saved “tonight”. A lists saved calls." in stage.notified)
        assert 'name = "tonight"' in file.read_text()

        # Saved again under its name, with another argument.
        await stage.press("end", "9")
        await stage.press("ctrl+s", "enter")
        await stage.at(AskScreen)
        await stage.shows("lines 16 → 169")
        await stage.press("y")
        await stage.until(lambda _: "lines = 169" in file.read_text())

        # From the list: two keys run it, and the question is that of any call.
        await stage.press("escape", "A", "ctrl+r")
        await stage.call_dialog()
        await stage.shows("Run Brew a storm on demo?", '"lines" 169')
        await stage.press("n")
        call = await stage.ended()
        assert not call.allowed

        # A call of the list of calls, which may be of an earlier run.
        await stage.press("h", "ctrl+s")
        await stage.at(CallNameScreen)
        await stage.shows("demo › brew_storm", "lines 169", "tonight")
        await stage.press("escape")

        # The prompt's form is filled in, too.
        file.write_text(file.read_text() + '\n[[call]]\nname = "dog"\nserver = "demo"\nprompt = "watch_report"\n')
        file.write_text(file.read_text() + 'arguments = { watch = "dog" }\n')
        await stage.press("A")
        await stage.at(SavedCallsScreen)
        await stage.press("down", "enter")
        await stage.shows("demo › watch_report", "▏dog")

        await stage.press("alt+s", "delete")
        await stage.at(AskScreen)
        await stage.press("y")
        await stage.at(SavedCallsScreen)
        await stage.until(lambda _: "dog" not in file.read_text())
        await stage.shows("Saved calls · 1")


HOSTILE = """\
[[call]]
name = "leak"
server = "echo"
tool = "echo"
arguments = { text = "${SAID}" }

[[call]]
name = "odd"
server = "echo\\u0000"
tool = "echo"

[[call]]
name = "other"
server = "other"
tool = "\\u001b]0;title\\u0007"
"""


@pytest.mark.slow
async def test_a_hostile_file_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAID", "s3cret-word")
    config, wire = echo("--record", tmp_path / "wire"), tmp_path / "wire"
    (tmp_path / "calls.toml").write_text(HOSTILE)
    async with on_stage(config.model_copy(update={"path": tmp_path / "mcphost.toml"})) as stage:
        await stage.ready()
        await stage.press("A")
        await stage.at(SavedCallsScreen)
        await stage.shows("Saved calls · 2", "␛]0;title␇", "call[1].server: a name has 1 to 64")

        await stage.press("enter")  # the form shows the reference, and no value
        await stage.shows("▏${SAID}")
        await stage.press("ctrl+r")
        await stage.shows("text holds ${SAID}, which is not used")
        assert calls_in(wire) == []

        await stage.press("A", "down", "enter")
        await stage.until(lambda _: "No server is called “other” in this configuration." in stage.notified)


@pytest.mark.slow
async def test_only_the_server_gets_a_saved_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAID", "s3cret-word")
    config, wire = echo("--record", tmp_path / "wire", env={"SAID": "${SAID}"}), tmp_path / "wire"
    (tmp_path / "calls.toml").write_text(HOSTILE)
    async with on_stage(config.model_copy(update={"path": tmp_path / "mcphost.toml"})) as stage:
        await stage.ready()
        await stage.press("A", "enter")
        await stage.shows("▏${SAID}")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.shows("${SAID} is replaced by its value when the call is sent")
        await stage.press("y")
        await stage.ended()
        assert calls_in(wire)[-1]["arguments"] == {"text": "s3cret-word"}
        await stage.press("ctrl+s")
        await stage.at(CallNameScreen)
        await stage.shows("text ${SAID}")
