from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult

from mcphost.errors import Declined
from mcphost.host.catalog import CatalogTool
from mcphost.host.history.past_call import PastCall
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.protocol.forms.listed_arguments import schema_arguments
from mcphost.protocol.models.tools import CallToolResult, Tool
from mcphost.tui.catalog.argument_form import TextArgument
from mcphost.tui.catalog.argument_table import argument_table, text_arguments
from mcphost.tui.tools.preview import CLAIMS, calls_before, claims_explained, last_calls
from mcphost.tui.tools.workbench import ToolForm


async def test_going_through_the_list_of_tools_restyles_no_form() -> None:
    """Each tool under the cursor is described, and the form below stays away."""

    class CountingForm(ToolForm):
        styled = 0

        def update_node_styles(self, animate: bool = True) -> None:
            self.styled += 1
            super().update_node_styles(animate)

    class OneForm(App[None]):
        def compose(self) -> ComposeResult:
            yield CountingForm()

    async with OneForm().run_test() as pilot:
        form = pilot.app.query_one(CountingForm)
        form.styled = 0
        for name in ("brew", "pour"):
            form.preview(offered(name))
            await pilot.pause()
            assert name in str(form.border_title)
        assert (form.styled, form.form.display) == (0, False)
        form.show_about(offered("brew"))
        assert form.form.display


NESTED = {
    "type": "object",
    "required": ["path"],
    "properties": {
        "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "description": "Most\n  lines"},
        "path": {"type": "string", "description": "Where it is. " * 12},
        "place": {"type": "object", "required": ["city"], "properties": {"city": {"enum": ["Rome", "Oslo"]}}},
    },
}


@pytest.mark.parametrize("width", [24, 40, 57, 80, 118, 300])
def test_a_table_of_arguments_fits_its_width(width: int) -> None:
    lines = list(argument_table(schema_arguments(NESTED), width))
    assert max(line.cell_length for line in lines) <= width
    text = "\n".join(line.plain.rstrip() for line in lines)
    assert text.index("path*") < text.index("limit")
    limit = next(line for line in text.splitlines() if line.startswith("limit"))
    assert ("Most lines" in limit) is (width >= 80)
    if width >= 80:
        assert lines[0].plain.split() == ["argument", "type", "default", "meaning"]
        assert "limit        whole number, 1 to 9  3         Most lines" in text
        assert "place.city*  Rome | Oslo           required" in text


def test_a_title_that_repeats_the_name_is_left_out() -> None:
    properties = {"repo_path": {"type": "string", "title": "Repo Path"}, "n": {"type": "string", "title": "Ships"}}
    lines = [line.plain.rstrip() for line in argument_table(schema_arguments({"properties": properties}), 60)]
    assert [line.split() for line in lines] == [
        ["argument", "type", "meaning"],
        ["repo_path", "text"],
        ["n", "text", "Ships"],
    ]


def test_arguments_that_are_all_texts_have_no_column_of_types() -> None:
    asked = [TextArgument("ship", "", "The name of the ship, as it is painted on her bow", required=True)]
    lines = [line.plain for line in argument_table(text_arguments(asked), 52)]
    assert [line.rstrip() for line in lines] == [
        "argument  default   meaning",
        "ship*     required  The name of the ship, as it is",
        "                    painted on her bow",
    ]


@pytest.mark.hostile("T01", "C14")
def test_a_hostile_schema_is_cut_and_marked_in_the_table() -> None:
    properties = {f"a{n}\x1b[2J\u202e": {"type": "string", "description": "\x9b" * 5_000} for n in range(150)}
    many = schema_arguments({"type": "object", "properties": properties})
    assert (len(many.rows), many.left_out) == (40, "… 110 more")
    text = "".join(line.plain for line in argument_table(many, 60))
    assert not {"\x1b", "\u202e", "\x9b"} & set(text)
    assert len(text) < 40 * 60 * 5


def test_a_schema_without_a_form_has_a_table_that_says_why() -> None:
    schema = {"type": "object", "allOf": [{"properties": {"b": {}}}], "properties": {"a": {"type": "integer"}}}
    found = schema_arguments({**schema, "required": ["a"]})
    assert [(row.name, row.needed, row.type) for row in found.rows] == [("a", True, "whole number")]
    assert found.raw_only == "the schema combines several forms (allOf)"


def ended(number: int, tool: str, **result: Any) -> ToolCall:
    call = ToolCall(number, CallRequest("kettle", tool, {}), lambda: 0.0)
    call.answered(CallToolResult.read(result), None)
    return call


def test_the_last_calls_of_a_tool_say_what_came_of_them() -> None:
    declined = ToolCall(9, CallRequest("kettle", "brew", {}), lambda: 0.0)
    declined.failed(Declined("no", by="user"))
    calls = [
        *(ended(n, "brew", content=[]) for n in range(5)),
        ended(5, "brew", content=[{"type": "text", "text": "\n hot\x1b \ntea"}]),
        ended(6, "pour", content=[]),
        ended(7, "brew", content=[], structuredContent={"cups": [{"n": 1}, {"n": 2}]}),
        ended(8, "brew", content=[{"type": "text", "text": "dry"}], isError=True),
        declined,
    ]
    found = last_calls(calls, ("kettle", "brew"))
    assert [call.result for call in found] == [
        *("Not run: you declined", "The tool reports: dry", "cups · 2 items", "hot␛", "no content"),
    ]


def test_calls_of_earlier_runs_say_how_large_their_results_were() -> None:
    def past(number: int, **more: Any) -> PastCall:
        state = more.pop("state", CallState.DONE)
        known = ("run", 1, 0.0, "kettle", "k", "brew", "you", state, 0.5, True)
        return PastCall(number, *known, more.pop("error", ""), "{}", **more)

    calls = [past(0), past(1, result_size=1_900), past(2, state=CallState.ERROR, error="gone\x1b\nfor good")]
    assert [call.result for call in calls_before(calls)] == ["a result of 1.9 kB", "gone␛"]


def test_every_claim_of_a_server_has_its_meaning() -> None:
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    for value in (True, False):
        tool = Tool.read({"name": "a", "inputSchema": {}, "annotations": dict.fromkeys(hints, value)})
        assert set(tool.claims) <= set(CLAIMS)
        assert CLAIMS[tool.claims[0]] in claims_explained(tool).plain


def offered(name: str) -> CatalogTool:
    return CatalogTool("kettle", Tool.read({"name": name, "inputSchema": {"type": "object"}}))
