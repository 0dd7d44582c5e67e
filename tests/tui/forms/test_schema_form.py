from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.events import Key, Paste
from textual.geometry import Size
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from mcphost.protocol.forms.form import read_form
from mcphost.tui.forms import schema_form
from mcphost.tui.forms.field_row import FieldRow
from mcphost.tui.forms.pickers import OneOf
from mcphost.tui.forms.raw_json import RawArea
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.forms.text_boxes import LineBox, LinesBox, conceal, dump, reveal, stepped_number
from mcphost.tui.kit.key_bar import KeyLine

STRING, INTEGER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
COLOURS = {"enum": ["r", "g", "b"], "enumNames": ["Red", "Green", "Blue"]}


class FormApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[dict[str, Any]] = []
        self.valid: list[bool] = []

    def compose(self) -> ComposeResult:
        yield SchemaForm()

    @property
    def form(self) -> SchemaForm:
        return self.query_one(SchemaForm)

    def on_schema_form_submitted(self, event: SchemaForm.Submitted) -> None:
        self.submitted.append(event.arguments)

    def on_schema_form_changed(self, event: SchemaForm.Changed) -> None:
        self.valid.append(event.valid)

    def screen_text(self) -> str:
        lines = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in line) for line in lines)


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


@asynccontextmanager
async def shown(
    of: Any, arguments: Any = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[FormApp, Pilot[None]]]:
    app = FormApp()
    async with app.run_test(size=size) as pilot:
        await begin(app, of, arguments)
        await pilot.pause()
        yield app, pilot


async def begin(app: FormApp, of: Any, arguments: Any = None) -> None:
    await app.form.load(of, arguments)
    app.form.focus_first()


VALUES: list[tuple[Any, str | list[str], Any]] = [
    (STRING, "a b", "a b"),
    (STRING, '""', ""),
    ({**STRING, "maxLength": 900}, ["a", "enter", "b"], "a\nb"),
    (INTEGER, ["4", "up", "up", "down"], 5),
    ({**INTEGER, "minimum": 3, "maximum": 4}, ["up", "up", "up"], 4),
    ({"type": "number"}, ["1", ".", "5", "up"], 2.5),
    (BOOLEAN, ["space"], True),
    (BOOLEAN, ["space", "space"], False),
    (BOOLEAN, ["n"], False),
    ({**BOOLEAN, "default": True}, ["space"], False),
    (COLOURS, ["right", "right"], "g"),
    (COLOURS, ["left"], "b"),
    (COLOURS, ["g", "r", "enter"], "g"),
    (COLOURS, ["enter", "down", "space"], "g"),
    ({"type": "array", "items": COLOURS}, ["space", "down", "down", "space"], ["r", "b"]),
    ({"type": "array", "items": COLOURS}, ["b", "l", "space", "backspace", "space"], []),
    ({"type": "array", "items": INTEGER}, ["1", "enter", "2"], [1, 2]),
    ({}, "[1,2]", [1, 2]),
    ({"type": ["integer", "null"]}, "null", None),
    (schema(inner=STRING), "x", {"inner": "x"}),
]

LEFT_OUT: list[tuple[Any, list[str]]] = [
    (STRING, []),
    (STRING, ["a", "backspace"]),
    (INTEGER, []),
    (BOOLEAN, ["space", "backspace"]),
    (BOOLEAN, ["space", "space", "space"]),
    (COLOURS, ["right", "delete"]),
    (COLOURS, ["enter", "down", "down", "escape"]),
    ({"type": "array", "items": STRING}, []),
    ({}, []),
]


@pytest.mark.requirement("TOOLS-03")
@pytest.mark.parametrize(("part", "keys", "value"), VALUES)
async def test_keys_in_a_field_make_its_value(part: Any, keys: str | list[str], value: Any) -> None:
    async with shown(schema("it", it=part)) as (app, pilot):
        await pilot.press(*keys)
        assert app.form.values() == {"it": value}
        await pilot.press("ctrl+r")
        assert app.submitted == [{"it": value}]


@pytest.mark.parametrize(("part", "keys"), LEFT_OUT)
async def test_an_optional_field_with_nothing_in_it_is_not_sent(part: Any, keys: list[str]) -> None:
    async with shown(schema(it=part)) as (app, pilot):
        await pilot.press(*keys)
        assert app.form.values() == {}


async def test_a_new_form_has_defaults_and_keeps_arguments() -> None:
    wanted = schema(a={**STRING, "default": "x"}, b={**COLOURS, "default": "g"}, c=INTEGER)
    async with shown(wanted) as (app, _):
        assert app.form.values() == {"a": "x", "b": "g"}
        await app.form.load(wanted, {"c": 3, "unknown": [1]})
        assert app.form.values() == {"c": 3, "unknown": [1]}


LINES = {**STRING, "maxLength": 900}
LIST_OF_TEXTS = {"type": "array", "items": STRING}
BLANK: list[tuple[dict[str, Any], str]] = [
    ({**STRING, "default": ""}, "default: empty"),
    ({**LINES, "default": ""}, "default: empty"),
    ({**STRING, "default": " "}, 'default: " "'),
    ({**STRING, "default": None}, "default: null"),
    ({**LIST_OF_TEXTS, "default": []}, "default: empty list"),
    ({**LIST_OF_TEXTS, "default": None}, "default: null"),
    (schema(inner={**STRING, "default": ""}), "default: empty"),
    ({**schema(inner=STRING), "default": {"inner": ""}}, "default: empty"),
]


@pytest.mark.parametrize(("part", "words"), BLANK)
async def test_an_invisible_default_is_a_hint_and_not_sent(part: dict[str, Any], words: str) -> None:
    async with shown(schema(it=part)) as (app, pilot):
        assert words in app.screen_text()
        assert app.form.values() == {}
        await pilot.press("ctrl+j")
        assert app.query_one(RawArea).text == "{}"
        await pilot.press("ctrl+j", "a", "b", "c")
        assert "abc" in json.dumps(app.form.values()).strip('{}" :[]').split('"')
        await pilot.press("backspace", "backspace", "backspace")
        assert app.form.values() == {}


FILLED: list[tuple[dict[str, Any], Any]] = [
    ({**STRING, "default": "old"}, "7"),
    ({**LINES, "default": "old\nand older"}, "7"),
    ({**INTEGER, "default": 0}, 7),
    ({"type": "number", "default": 1.5}, 7),
    ({**LIST_OF_TEXTS, "default": ["a", "b"]}, ["7"]),
    ({"default": {"a": 1}}, 7),
]


@pytest.mark.parametrize(("part", "value"), FILLED)
async def test_typing_replaces_what_the_form_filled_in(part: dict[str, Any], value: Any) -> None:
    async with shown(schema(it=part)) as (app, pilot):
        assert app.form.values() == {"it": part["default"]}
        await pilot.press("7")
        assert app.form.values() == {"it": value}
        await begin(app, schema(it={**part, "default": None}), {"it": part["default"]})
        await pilot.press("7")
        assert app.form.values() == {"it": value}


@pytest.mark.parametrize("kind", [STRING, LINES])
async def test_typed_text_is_not_selected_when_focus_returns(kind: dict[str, Any]) -> None:
    async with shown(schema(a={**kind, "default": "old"}, b=STRING)) as (app, pilot):
        await pilot.press("n", "e", "tab", "shift+tab", "w")
        assert app.form.values() == {"a": "new"}


async def test_a_pasted_text_is_not_replaced_by_what_is_typed_after_it() -> None:
    async with shown(schema(a=STRING)) as (app, pilot):
        app.query_one("#fields LineBox").post_message(Paste("one\ntwo"))
        await pilot.pause()
        await pilot.press("!")
        values = app.form.values()
        assert values is not None
        assert sorted(values["a"]) == sorted("one\ntwo!")


async def test_an_error_appears_under_a_field_once_it_was_touched() -> None:
    async with shown(schema("name", "n", name=STRING, n=INTEGER)) as (app, pilot):
        assert "▲" not in app.screen_text()
        await pilot.press("tab", "x")
        await pilot.pause()
        assert "▲ must be a whole number" in app.screen_text()
        assert "is required" not in app.screen_text()
        assert app.valid == [False]


async def test_a_submit_with_errors_goes_to_the_first_one() -> None:
    async with shown(schema("b", "c", a=STRING, b=STRING, c=COLOURS)) as (app, pilot):
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert app.submitted == []
        assert "▲ 2 invalid fields" in app.screen_text()
        assert focused_name(app) == "b"
        await pilot.press("x")
        await pilot.pause()
        assert "▲ 1 invalid field" in app.screen_text()


def focused_name(app: FormApp) -> str:
    row = next(row for row in app.query(FieldRow) if row.box is app.focused)
    return ".".join(map(str, row.field.path))


async def test_enter_goes_on_and_submits_on_the_last_field() -> None:
    async with shown(schema(a=STRING, c=COLOURS, g=schema(b=BOOLEAN), z=INTEGER)) as (app, pilot):
        visited = []
        for keys in (["enter"], ["enter", "enter"], ["enter"]):
            visited.append(focused_name(app))
            await pilot.press(*keys)
        assert [*visited, focused_name(app)] == ["a", "c", "g.b", "z"]
        await pilot.press("1", "enter")
        assert app.submitted == [{"z": 1}]


async def test_up_and_down_move_between_fields_unless_the_field_needs_them() -> None:
    several = {"type": "array", "items": COLOURS}
    async with shown(schema(a=STRING, content=STRING, s=several, t=BOOLEAN)) as (app, pilot):
        visited = []
        for _ in range(6):
            await pilot.press("down")
            visited.append(focused_name(app))
        assert visited == ["content", "s", "s", "s", "t", "t"]
        await pilot.press("up", "up", "up", "up", "up")
        assert focused_name(app) == "a"


async def test_raw_json_holds_what_is_typed_and_comes_back_to_the_fields() -> None:
    async with shown(schema("n", n=INTEGER, s=STRING), {"s": "x", "other": 1}) as (app, pilot):
        await pilot.press("7", "a", "ctrl+j")
        area = app.query_one(RawArea)
        assert app.focused is area
        assert json.loads(area.text) == {"n": "7a", "s": "x", "other": 1}
        await pilot.pause()
        assert "n must be a whole number" in app.screen_text()
        area.text = '{"s": "y", "n": 8, "more": [true]}'
        await pilot.press("f7")
        assert app.form.values() == {"s": "y", "n": 8, "more": [True]}
        assert focused_name(app) == "n"


async def test_json_that_is_none_is_kept_and_says_where_it_is_wrong() -> None:
    async with shown(schema(s=STRING)) as (app, pilot):
        await pilot.press("x", "ctrl+j")
        app.query_one(RawArea).text = '{"s": 1,\n"s"}'
        await pilot.press("ctrl+j", "ctrl+r")
        await pilot.pause()
        assert app.query_one(RawArea).text == '{"s": 1,\n"s"}'
        assert "line 2, column 4" in app.screen_text()
        assert (app.form.values(), app.submitted, app.focused) == (None, [], app.query_one(RawArea))


async def test_unfinished_text_survives_raw_json_that_was_not_changed_there() -> None:
    async with shown(schema(j={}, n=INTEGER)) as (app, pilot):
        await pilot.press(*"{[", "tab", "1", "e", "ctrl+j")
        area = app.query_one(RawArea)
        area.text = dump({**json.loads(area.text), "k": 1})
        await pilot.press("ctrl+j")
        assert [row.entry for row in app.query(FieldRow)] == ["{[", "1e"]


async def test_a_schema_that_makes_no_form_opens_as_json_with_the_reason() -> None:
    async with shown(schema()) as (app, pilot):
        hopeless: list[Any] = [{"allOf": [schema(b=STRING), schema(c=STRING)]}, [], {"$ref": "#/none"}]
        for of in hopeless:
            await begin(app, of, {"a": 1})
            await pilot.press("ctrl+j", "ctrl+r")
            assert app.form.raw_shown
            assert "As JSON, since" in app.screen_text()
            assert app.submitted.pop() == {"a": 1}


async def test_what_was_typed_for_a_tool_is_there_when_one_comes_back() -> None:
    first, second = schema(a=STRING, n=INTEGER, c=COLOURS), schema(a=STRING)
    async with shown(first) as (app, pilot):
        await pilot.press("x", "tab", "1", "z", "tab", "right", "ctrl+j")
        app.query_one(RawArea).text = "{ unfinished"
        state = app.form.state()
        await app.form.load(second)
        assert (app.form.values(), app.form.raw_shown) == ({}, False)
        await app.form.load(first)
        await app.form.restore(state)
        assert app.form.raw_shown
        assert app.query_one(RawArea).text == "{ unfinished"
        assert [row.entry for row in app.query(FieldRow)] == ["x", "1z", "r"]


async def test_the_form_asked_for_last_is_the_one_that_stays() -> None:
    async with shown(schema(a=STRING)) as (app, _):
        loads = [app.run_worker(app.form.load(schema(**{name: STRING}))) for name in "bcd"]
        for load in loads:
            await load.wait()
        assert [row.field.name for row in app.query(FieldRow)] == ["d"]


async def test_problems_mark_their_fields_until_these_are_edited() -> None:
    parts = schema(**{"items": {"type": "array", "items": STRING}, "odd name": STRING, "g": schema(x=STRING)})
    async with shown(parts) as (app, pilot):
        problems = [
            ("items[2].name", "is bad"),
            ('["odd name"]', "is odd"),
            (["g", "x"], "is worse"),
            ("", "is all wrong"),
        ]
        app.form.set_errors(problems)
        await pilot.pause()
        assert [row.problem for row in app.query(FieldRow)] == ["[2].name is bad", "is odd", "is worse"]
        assert "is all wrong" in app.screen_text()
        await pilot.press("x")
        await pilot.pause()
        assert [row.problem for row in app.query(FieldRow)] == ["", "is odd", "is worse"]


async def test_a_tool_without_arguments_is_run_by_enter() -> None:
    async with shown({"type": "object"}) as (app, pilot):
        await pilot.press("enter")
        assert app.submitted == [{}]


async def test_what_looks_secret_is_hidden_until_asked_for() -> None:
    async with shown(schema(api_key=STRING)) as (app, pilot):
        await pilot.press("s", "3", "x")
        assert "looks secret" in app.screen_text()
        assert "s3x" not in app.screen_text()
        await pilot.press("ctrl+t")
        assert "s3x" in app.screen_text()


@pytest.mark.hostile("T01")
async def test_foreign_text_is_marked_and_sent_as_it_was() -> None:
    evil = "\x1b]0;x\x07\u202e[red]"
    parts = schema(
        **{evil: {**STRING, "description": evil, "default": evil}},
        c={"enum": [evil], "default": evil, "title": evil},
        content={**STRING, "default": evil + "\n2"},
        j={"default": [evil]},
    )
    async with shown(parts) as (app, pilot):
        for key in ("tab", "ctrl+j"):
            text = app.screen_text()
            assert "[red]" in text
            assert not {"\x1b", "\x07", "\u202e"} & set(text)
            await pilot.press(key)
            await pilot.pause()
        await pilot.press("ctrl+r")
        assert app.submitted == [{evil: evil, "c": evil, "content": evil + "\n2", "j": [evil]}]


async def test_a_paste_of_several_lines_into_one_line_loses_none() -> None:
    async with shown(schema(a=STRING, n=INTEGER)) as (app, pilot):
        await pilot.press("x")
        app.query_one("#fields LineBox").post_message(Paste("1\r\n2\u202e"))
        await pilot.pause()
        await pilot.pause()
        assert app.form.values() == {"a": "x1\n2\u202e"}
        assert isinstance(app.focused, LinesBox)


@given(st.text(st.characters(codec=None) | st.sampled_from("⟨U+0⟩\u202e\u0301")), st.booleans())
def test_concealed_text_is_safe_and_reveals_exactly_what_it_was(text: str, lines: bool) -> None:
    told = conceal(text, lines=lines)
    assert reveal(told) == text
    assert not set(told) & set("\x1b\u202e\x7f\r" + ("" if lines else "\n\t"))
    assert json.loads(dump([text])) == [text]


@pytest.mark.parametrize(
    ("rules", "text", "step", "told"),
    [
        ({}, "", 1, "0"),
        ({}, "9" * 30, 1, "1" + "0" * 30),
        ({}, "x", 1, None),
        ({"minimum": 5}, "", 1, "5"),
        ({"maximum": 5}, "500", 1, "5"),
        ({"maximum": 5}, "5", 1, None),
        ({"exclusiveMaximum": 5}, "4", 1, None),
        ({"multipleOf": 5}, "5", -1, "0"),
        ({"multipleOf": 0}, "5", 1, "6"),
        ({"minimum": float("inf")}, "1", 1, "2"),
    ],
)
def test_a_number_is_nudged_within_its_range(rules: Any, text: str, step: int, told: str | None) -> None:
    field = read_form(schema(n={**INTEGER, **rules})).fields[0]
    assert stepped_number(field, text, step) == told


async def test_the_hint_of_an_empty_text_is_whole_in_a_narrow_form() -> None:
    async with shown(schema("a", a={**STRING, "minLength": 0}, b=STRING), size=(48, 24)) as (app, pilot):
        for _ in range(2):
            assert '("" for empty)' in app.screen_text()
            await pilot.press("tab")


async def test_the_keys_below_a_row_of_a_list_name_the_one_that_runs() -> None:
    rows = {"type": "array", "items": schema(name=STRING)}
    async with shown(schema(rows=rows), {"rows": [{"name": "a"}]}, size=(57, 24)) as (app, pilot):
        await pilot.press("tab")
        await pilot.pause()
        (keys,) = [line for line in app.screen_text().splitlines() if "ctrl+d delete" in line]
        assert "ctrl+r run" in keys


@pytest.mark.parametrize("size", [(24, 20), (55, 24), (80, 24), (200, 60)])
async def test_the_focused_field_is_on_screen_at_any_size(size: tuple[int, int]) -> None:
    parts = {f"field_{n}": {**STRING, "description": "What it is for. " * 20} for n in range(60)}
    async with shown(schema(**parts), size=size) as (app, pilot):
        app.form.set_errors([("field_40", "is wrong")])
        list(app.query(FieldRow))[39].box.focus()
        await pilot.press("enter")
        wanted = ("▸ field_40", "▲ is wrong", "ctrl+r run")
        async with asyncio.timeout(60):  # scrolling there takes a few layouts
            while not all(words in app.screen_text() for words in wanted):
                await pilot.pause(0.02)


@pytest.mark.slow
async def test_two_hundred_fields_and_ten_thousand_choices_can_be_filled_in() -> None:
    values = [f"value {n}" for n in range(10_000)]
    parts: dict[str, Any] = {"big": {"enum": values}} | {f"f{n}": STRING for n in range(199)}
    async with shown(schema(**parts)) as (app, pilot):
        await pilot.press("9", "9", "9", "9")
        picker = app.query_one(OneOf)
        assert picker.count() == "1 of 10,001"
        await pilot.press("enter", "x")
        assert app.form.values() == {"big": "value 9999", "f0": "x"}


async def test_a_box_with_nothing_to_say_beside_it_has_the_whole_row() -> None:
    words = {"enum": ["an answer of a good many words, and then some", "b"]}
    async with shown(schema(name={"type": "string", "minLength": 1, "maxLength": 60}, why=words), {"why": "b"}) as (
        app,
        pilot,
    ):
        await pilot.press("tab", "left")
        assert "an answer of a good many words, and then some ▸  2 choices" in app.screen_text()


async def test_the_key_line_can_be_clicked() -> None:
    async with shown(schema(a=STRING)) as (app, pilot):
        line = app.query_one("FormKeys", Static)
        await pilot.click(line, offset=(line.size.width - 3, 0))
        assert app.form.raw_shown


def test_every_key_is_explained() -> None:
    from mcphost.tui.forms.pickers import Picker

    bindings = [key for widget in (SchemaForm, LineBox, Picker) for key in widget.BINDINGS]
    assert all(getattr(key, "tooltip", "") and getattr(key, "id", "") for key in bindings)
    assert issubclass(SchemaForm.Submitted, Message)


async def test_another_schema_does_not_keep_what_was_said_of_the_one_before() -> None:
    async with shown(schema("n", n=INTEGER)) as (app, pilot):
        await pilot.press("ctrl+r")
        assert "1 invalid field" in app.screen_text()
        await begin(app, schema(s=STRING))
        await pilot.pause()
        assert "invalid" not in app.screen_text()


async def test_the_key_line_names_the_key_to_raw_json() -> None:
    class WithKeys(FormApp):
        def compose(self) -> ComposeResult:
            yield SchemaForm()
            yield KeyLine()

    app = WithKeys()
    async with app.run_test(size=(80, 24)) as pilot:
        await begin(app, schema(j={}))  # a text area, which has a use of its own for f7
        await pilot.pause()
        assert "^j raw JSON" in app.screen_text().splitlines()[-1]
        await pilot.press("ctrl+j")
        await pilot.pause()
        assert "^j fields" in app.screen_text().splitlines()[-1]
        assert "raw JSON" not in app.screen_text().splitlines()[-1]


async def test_a_letter_in_a_field_lays_out_nothing() -> None:
    async with shown(schema(s=STRING, n=INTEGER)) as (app, pilot):
        await pilot.press("a")
        await pilot.pause()
        laid_out = 0
        reflow = app.screen._compositor.reflow

        def counted(parent: Widget, size: Size) -> Any:
            nonlocal laid_out
            laid_out += 1
            return reflow(parent, size)

        app.screen._compositor.reflow = counted  # type: ignore[method-assign]
        await pilot.press(*"bcdefgh")
        await pilot.pause()
        assert app.form.values() == {"s": "abcdefgh"}
        assert laid_out == 0


ORDER = schema(
    "lines",
    lines={"type": "array", "items": {"allOf": [schema("sku", sku=STRING, qty={**INTEGER, "minimum": 1}), {}]}},
    code={**STRING, "pattern": "^[a-z]+$"},
)


async def test_a_schema_problem_is_shown_once_typing_pauses() -> None:
    async with shown(ORDER) as (app, pilot):
        await pilot.press(*'[{"qty":0}]')
        await until_shown(app, pilot, "▲ [0].sku is required; [0].qty must be at least 1")
        await pilot.press("tab", "7")
        await until_shown(app, pilot, "▲ must match the pattern ^[a-z]+$")
        await pilot.press("ctrl+r")
        assert (app.submitted, focused_name(app)) == ([], "lines")
        assert "▲ 2 invalid fields" in app.screen_text()


async def test_the_whole_schema_is_not_looked_at_while_one_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_form, "PAUSE", 60.0)
    async with shown(ORDER, {"lines": []}) as (app, pilot):
        await pilot.press("tab", "7")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "must match" not in app.screen_text()
        monkeypatch.setattr(schema_form, "PAUSE", 0.01)
        await pilot.press("8")
        await until_shown(app, pilot, "▲ must match the pattern ^[a-z]+$")


async def test_a_submit_that_the_schema_refuses_goes_to_its_field() -> None:
    async with shown(ORDER, {"lines": [], "code": "7"}) as (app, pilot):
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert (app.submitted, focused_name(app)) == ([], "code")
        assert "▲ must match the pattern" in app.screen_text()
        await pilot.press("delete", "x", "ctrl+r")
        assert app.submitted == [{"lines": [], "code": "x"}]


async def until_shown(app: FormApp, pilot: Pilot[None], words: str) -> None:
    async with asyncio.timeout(20):
        while words not in app.screen_text():
            await pilot.pause(0.02)


async def test_the_form_is_checked_once_for_all_the_keys_of_a_frame() -> None:
    async with shown(schema(j={})) as (app, pilot):
        for _ in range(500):
            app.post_message(Key("a", "a"))
        async with asyncio.timeout(20):
            while app.form.state().entries["j",] != "a" * 500 or not app.valid:
                await pilot.pause(0.02)
        assert len(app.valid) < 50


MEMORY = schema(
    "entities",
    entities={
        "type": "array",
        "items": schema(
            "name",
            "entityType",
            "observations",
            name={**STRING, "description": "The name of the entity"},
            entityType={**STRING, "description": "The type of the entity"},
            observations={"type": "array", "items": STRING, "description": "What is associated with the entity"},
        ),
    },
)
ADA = {"name": "Ada", "entityType": "person", "observations": ["wrote", "counted"]}
OX = {"name": "Ox", "entityType": "beast", "observations": ["ate"]}


async def test_a_list_of_objects_is_filled_in_row_by_row_by_keys_alone() -> None:
    async with shown(MEMORY) as (app, pilot):
        assert "list of {name*, entityType*, observations*: list of text}" in app.screen_text()
        await pilot.press("tab", *"Ada", "enter", *"person", "enter", *"wrote", "enter", *"counted")
        assert app.form.values() == {"entities": [ADA]}
        await pilot.press("ctrl+n", *"Ox", "enter", *"beast", "enter", *"ate")
        assert app.form.values() == {"entities": [ADA, OX]}
        await pilot.press("alt+up")
        assert app.form.values() == {"entities": [OX, ADA]}
        assert focused_name(app) == "entities.0.observations"
        await pilot.press("ctrl+n", *"Nobody", "ctrl+d")
        assert app.form.values() == {"entities": [OX, ADA]}
        await pilot.press("ctrl+r")
        assert app.submitted == [{"entities": [OX, ADA]}]


@pytest.mark.parametrize("width", [60, 100], ids=["below the box", "too long to stand beside it"])
async def test_the_shape_of_a_row_is_shown_whole_without_the_focus(width: int) -> None:
    async with shown(schema("who", who=STRING, **MEMORY["properties"]), size=(width, 24)) as (app, _):
        assert focused_name(app) == "who"
        shape = "list of {name*, entityType*, observations*: list of text}"
        assert " ".join(app.screen_text().split()).count(shape) == 1


async def test_a_description_without_the_focus_ends_between_two_words() -> None:
    long = {**STRING, "description": "Which " + "unabbreviated " * 5}
    async with shown(schema("who", who=STRING, long=long), size=(60, 24)) as (app, _):
        assert "unabbreviated…" in app.screen_text()


async def test_a_submit_with_a_wrong_row_goes_to_its_field() -> None:
    async with shown(MEMORY, {"entities": [ADA, {**OX, "name": ""}]}, size=(80, 40)) as (app, pilot):
        await pilot.press(*["tab"] * 4, "ctrl+u", "ctrl+r")
        assert (app.submitted, focused_name(app)) == ([], "entities.1.name")
        await pilot.pause()
        assert '▲ is required (type "" for an empty string)' in app.screen_text()


async def test_rows_go_to_raw_json_and_back_with_what_is_unfinished() -> None:
    rows = schema(rows={"type": "array", "items": schema(n=INTEGER, s=STRING)})
    async with shown(rows, {"rows": [{"n": 1, "other": True}]}) as (app, pilot):
        await pilot.press("space", *"7a", "tab", "x", "ctrl+j")
        area = app.query_one(RawArea)
        assert json.loads(area.text) == {"rows": [{"n": 1, "other": True}, {"n": "7a", "s": "x"}]}
        area.text = '{"rows": [{"n": 1, "other": true}, {"n": "7a", "s": "x"}, {"n": 3}]}'
        await pilot.press("ctrl+j")
        assert [row.entry for row in app.query(FieldRow)] == [3, "1", "", "7a", "x", "3", ""]
        await pilot.press("ctrl+j")
        app.query_one(RawArea).text = '{"rows": [{"n": 5}]}'
        await pilot.press("ctrl+j")
        assert app.form.values() == {"rows": [{"n": 5}]}


async def test_a_map_has_a_row_for_each_key() -> None:
    async with shown(schema(ages={"type": "object", "additionalProperties": INTEGER})) as (app, pilot):
        await pilot.press("ctrl+n", *"Ada", "enter", *"36", "ctrl+n", *"Ada", "tab", *"4", "ctrl+r")
        await pilot.pause()
        assert (app.submitted, focused_name(app)) == ([], "ages.1.-1")
        assert "is here twice" in app.screen_text()
        await pilot.press("end", "x", "ctrl+r")
        assert app.submitted == [{"ages": {"Ada": 36, "Adax": 4}}]


async def test_a_field_that_was_wrong_before_the_last_keys_is_not_gone_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(schema(ages={"type": "object", "additionalProperties": INTEGER})) as (app, pilot):
        await pilot.press("ctrl+n", *"Ada")
        await until_shown(app, pilot, "▲")
        monkeypatch.setattr(schema_form, "PAUSE", 3600.0)  # the schema is not asked about what is typed from here on
        await pilot.press("enter", *"36", "ctrl+n", *"Ada", "enter", *"4", "ctrl+r")
        assert focused_name(app) == "ages.1.-1"


async def test_a_branch_is_chosen_and_its_fields_follow() -> None:
    circle = schema("kind", "radius", kind={"const": "circle"}, radius=INTEGER)
    box = schema("kind", "side", kind={"const": "box"}, side=INTEGER)
    async with shown(schema("shape", shape={"oneOf": [circle, box]})) as (app, pilot):
        await pilot.press("right")
        assert [row.field.name for row in app.query(FieldRow)] == ["shape", "kind", "radius"]
        await pilot.press("tab", "tab", "7", "shift+tab", "shift+tab", "right")
        assert [row.field.name for row in app.query(FieldRow)] == ["shape", "kind", "side"]
        await pilot.press("tab", "tab", "8", "ctrl+r")
        assert app.submitted == [{"shape": {"kind": "box", "side": 8}}]
        await pilot.press("shift+tab", "shift+tab", "left")
        assert app.form.values() == {"shape": {"kind": "circle", "radius": 7}}


async def test_a_skeleton_is_one_key_away_in_an_empty_box_for_json() -> None:
    lines = {"type": "array", "items": {"allOf": [schema("sku", "qty", sku=STRING, qty={**INTEGER, "minimum": 1})]}}
    deep = {"type": "array", "prefixItems": [lines], "items": lines["items"]}
    async with shown(schema(deep=deep)) as (app, pilot):
        assert "ctrl+o skeleton" in app.screen_text()
        await pilot.press("ctrl+o")
        assert app.form.values() == {"deep": [{"sku": "", "qty": 1}]}
        await pilot.press("ctrl+o")
        assert app.form.values() == {"deep": [{"sku": "", "qty": 1}]}


@pytest.mark.slow
@pytest.mark.hostile("F07", "L06")
async def test_a_hostile_schema_is_drawn_in_bounded_time() -> None:
    deep: dict[str, Any] = schema(a=STRING)
    for _ in range(1_000):
        deep = schema("in", **{"in": {"type": "array", "items": {"anyOf": [deep, {"type": "array", "items": deep}]}}})
    node: dict[str, Any] = {"$defs": {"n": schema("all", "any", all={"type": "array", "items": {"$ref": "#/$defs/n"}})}}
    node["$defs"]["n"]["properties"]["any"] = {"anyOf": [{"$ref": "#/$defs/n"}] * 20}
    hostile = [deep, schema(**{f"p{n}": STRING for n in range(10_000)}), {**node, "$ref": "#/$defs/n"}]
    async with shown(schema()) as (app, pilot):
        for each in hostile:
            began = time.thread_time()
            await begin(app, each)
            for _ in range(20):
                await pilot.press("tab", "ctrl+n")
            assert time.thread_time() - began < 20
            assert len(app.query(FieldRow)) <= 250


async def test_f6_shows_the_schema_beside_the_fields_if_wide() -> None:
    async with shown(MEMORY, size=(200, 40)) as (app, pilot):
        await pilot.press("tab", "f6")
        await until_shown(app, pilot, '"description": "The type of the entity"')
        assert focused_name(app) == "entities.0.name"
        await pilot.press("f6")
        await pilot.pause()
        assert '"description"' not in app.screen_text()
    async with shown(MEMORY) as (app, pilot):
        await pilot.press("f6")
        await until_shown(app, pilot, '"type": "object"')
        await pilot.press("escape", "tab", "A")
        assert focused_name(app) == "entities.0.name"
