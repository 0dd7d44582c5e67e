"""The keys of ``[ui.keys]``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from textual.widgets import TabbedContent

import mcphost.manual
from mcphost.config import UI
from mcphost.tui.own_keys import BoundKey, bound_keys, checked, problems_of, rows
from tests.tui.stage import demo, on_stage

TABLE = cache(bound_keys)


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        ("form.sumbit", "f13", "no key has this id; did you mean form.submit?"),
        ("ask.yes", "j", "the keys of dialogs stay as they are"),
        ("form.submit", "controll+e", "'controll+e' is not a key"),
        ("form.submit", "g", "'g' is typed where this key works"),
        ("app.palette", "enter", "'enter' is typed where this key works"),
        ("app.grants", "f4", "f4 is the key of go.traffic there"),
        ("go.tools", "g", "g is the key of app.grants there"),
        ("result.save", "m", "m is the key of block.look there"),
        ("text.wrap", "y", "y is the key of"),
    ],
)
def test_keys_that_cannot_be_used_say_why(name: str, keys: str, words: str) -> None:
    usable, problems = checked({name: keys}, TABLE())
    assert words in problems[name]
    assert not usable


def test_a_clash_names_both_ids() -> None:
    _, problems = checked({"go.calls": "ctrl+g", "app.reload": "ctrl+g"}, TABLE())
    assert list(problems) == ["go.calls", "app.reload"]
    assert "app.reload" in problems["go.calls"]


def test_two_keys_can_be_swapped() -> None:
    swapped = {"go.logs": "f4", "go.traffic": "f3"}
    assert checked(swapped, TABLE()) == (swapped, {})


def test_what_shares_a_key_moves_along_or_stays() -> None:
    usable, _ = checked({"form.raw": "f13"}, TABLE())
    assert usable == {"form.raw": "f13", "form.fields": "f13"}


def test_no_binding_clashes_with_the_keys_it_has() -> None:
    own = {each.id: each.binding.key for each in TABLE() if not each.is_fixed}
    assert checked(own, TABLE())[1] == {}


def test_every_changeable_binding_is_in_the_table_once() -> None:
    listed = [name for name, *_ in rows(TABLE(), {})]
    assert len(listed) == len(set(listed)) > 100
    assert all(about for *_, about in rows(TABLE(), {}))
    assert ("form.submit", "f13 *", "Submit the form") in rows(TABLE(), {"form.submit": "f13"})


def test_dialogs_and_their_answers_are_fixed() -> None:
    fixed: set[BoundKey] = {each for each in TABLE() if each.is_fixed}
    assert {"ToolCallScreen", "AskScreen"} <= {each.node.__name__ for each in fixed}


@pytest.mark.parametrize("text", ['[ui.keys]\n"form.sumbit" = "f13"', '[ui]\n[ui.keys]\nform.sumbit = "f13"'])
def test_a_problem_has_the_line_of_its_id(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    (problem,) = problems_of({"form.sumbit": "f13"}, (None, tmp_path / "missing", tmp_path / "config.toml"))
    assert (problem.path, problem.line) == (tmp_path / "config.toml", len(text.splitlines()))


def test_the_keys_of_the_manuals_example_are_free() -> None:
    page = (Path(mcphost.manual.__file__).parent / "configuration.md").read_text()
    example = next(each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "form.submit" in each)
    keys = {line.partition("=")[0].strip(): line.split('"')[1] for line in example.splitlines() if '"' in line}
    assert checked(keys, TABLE())[1] == {}


@pytest.mark.slow
async def test_own_keys_work_and_are_in_help_and_key_bar() -> None:
    keys = {"app.keys": "f13", "go.calls": "H", "go.logs": "f4", "form.submit": "f14"}
    config = demo().model_copy(update={"ui": UI(keys=keys)})
    async with on_stage(config, size=(120, 36)) as stage:
        await stage.shows("f4 is the key of go.traffic")
        await stage.ready()
        await stage.press("t", "enter")
        await stage.shows("f14 run · ctrl+j raw JSON")
        await stage.press("escape", "H")
        await stage.until(lambda app: app.main.query_one(TabbedContent).active == "calls")
        await stage.shows("f13 keys")
        await stage.press("f13")
        await stage.shows("The keys that work here", "f13")
