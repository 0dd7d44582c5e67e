"""The tools that change the lighthouse, fail, are forbidden, or change the list of tools."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import NoReturn

from mcphost.demo.lighthouse import LENSES, SHIPS, Lighthouse
from mcphost.demo.tool import DemoCall, DemoTool, ToolFailedError, text, tool
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.negotiation import InvalidParamsError
from mcphost.serving.served_request import Json

WRITES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
DESTROYS = WRITES | {"destructiveHint": True}
CRASH_EXIT_CODE = 13
LOGBOOK_URI = "lighthouse://logbook"

TIDE = {
    "type": "object",
    "title": "Tide",
    "properties": {
        "state": {"type": "string", "enum": ["rising", "high", "falling", "low"], "default": "rising"},
        "height_metres": {"type": "number", "minimum": 0, "maximum": 9, "default": 2.5},
    },
    "required": ["state"],
}
SKY = {
    "type": "string",
    "title": "Sky",
    "oneOf": [
        {"const": "clear", "title": "Clear, with stars"},
        {"const": "cloud", "title": "Cloudy"},
        {"const": "fog", "title": "Fog, thick as soup"},
        {"const": "storm", "title": "Storm"},
    ],
    "default": "clear",
}
SHIP: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 40},
        "bearing_degrees": {"type": "integer", "title": "Bearing", "minimum": 0, "maximum": 359},
        "hailed": {"type": "boolean", "title": "Hailed", "default": False},
    },
    "required": ["name"],
}
RELIEF: Json = {
    "title": "Relieved",
    "anyOf": [
        {
            "type": "object",
            "title": "by a keeper",
            "properties": {
                "keeper": {"type": "string", "title": "Keeper", "minLength": 1, "maxLength": 40},
                "minutes_late": {"type": "integer", "title": "Minutes late", "minimum": 0, "default": 0},
            },
            "required": ["keeper"],
        },
        {"type": "string", "title": "by nobody", "description": "The excuse", "minLength": 1, "maxLength": 80},
    ],
}
ENTRY: Json = {
    "keeper": {"type": "string", "title": "Keeper", "description": "Who writes", "minLength": 1, "maxLength": 40},
    "entry": {
        "type": "string",
        "title": "Entry",
        "description": "What happened; as many lines as you like",
        "contentMediaType": "text/plain",
        "minLength": 1,
        "maxLength": 4000,
    },
    "ships": {"type": "array", "title": "Ships", "items": SHIP, "maxItems": 12},
    "relief": RELIEF,
    "date": {"type": "string", "title": "Date", "format": "date"},
    "watch": {"type": "string", "title": "Watch", "enum": ["first", "middle", "morning"], "default": "first"},
    "sky": SKY,
    "wind_force": {"type": "integer", "title": "Wind (Beaufort)", "minimum": 0, "maximum": 12, "default": 4},
    "visibility_miles": {"type": "number", "title": "Visibility (miles)", "minimum": 0, "maximum": 30, "default": 12.5},
    "lamp_lit": {"type": "boolean", "title": "Lamp lit", "default": True},
    "seen": {"type": "array", "title": "Seen", "items": {"type": "string"}, "maxItems": 12, "default": ["puffins"]},
    "tide": TIDE,
}


@tool("Write in the logbook", ENTRY, required=("keeper", "entry"), hints=WRITES)
def keep_logbook(call: DemoCall) -> Json:
    """Writes an entry into the logbook. Its form has a field of every kind."""
    with call.state.lock:
        call.state.logbook.append(call.arguments)
        number = len(call.state.logbook)
    call.resource_changed(LOGBOOK_URI)
    call.log(LogLevel.INFO, f"entry {number} by {call.arguments['keeper']}", "logbook")
    return text(f"Entry {number} is written. The ink dries slowly out here.")


@tool("Read the logbook", hints={"readOnlyHint": True})
def read_logbook(call: DemoCall) -> Json:
    """Reads back what was written since this server started, as Markdown."""
    return text(pages(call.state))


def pages(state: Lighthouse) -> str:
    """The logbook as Markdown."""
    entries = list(enumerate(state.logbook, start=1))
    if not entries:
        return "The pages are empty. *Somebody* should write something."
    return "# Logbook\n\n" + "\n".join(_paragraph(number, entry) for number, entry in entries)


def _paragraph(number: int, entry: Json) -> str:
    lines = "\n".join(f"> {line}" for line in entry["entry"].splitlines())
    seen = [*entry["seen"], *(ship["name"] for ship in entry.get("ships", ()))]
    weather = f"sky {entry['sky']}, wind {entry['wind_force']}, seen: {', '.join(seen) or 'nothing'}"
    return f"## {number}. {entry['keeper']}, {entry['watch']} watch\n\n{lines}\n\n{weather}{_relieved(entry)}\n"


def _relieved(entry: Json) -> str:
    """A clause on the relief of the watch; empty if the entry does not mention it."""
    match entry.get("relief"):
        case {"keeper": keeper, **more}:
            late = more.get("minutes_late", 0)
            return f"; relieved by {keeper}" + (f", {late} minutes late" if late else "")
        case str(excuse):
            return f"; relieved by nobody: {excuse}"
    return ""


@tool("Tear out the pages", hints=DESTROYS | {"idempotentHint": True})
def tear_out_pages(call: DemoCall) -> Json:
    """Tears every page out of the logbook. They cannot be put back."""
    with call.state.lock:
        torn = len(call.state.logbook)
        call.state.logbook.clear()
    call.resource_changed(LOGBOOK_URI)
    return text(f"{torn} entries went to the wind.")


@tool("Feed the gulls", {"fish": {"type": "integer", "default": 3}})
def feed_gulls(call: DemoCall) -> Json:
    """Throws fish to the gulls. Makes no claims about itself at all."""
    with call.state.lock:
        call.state.gulls += call.arguments["fish"]
        gulls = call.state.gulls
    return text(f"There are {gulls} gulls now. They remember you.")


def _flashes_of_this_lens(state: Lighthouse, flash: DemoTool) -> DemoTool:
    """`flash_lamp` as it is with the lens now fitted: another description, and another limit."""
    times = {"type": "integer", "minimum": 1, "maximum": LENSES[state.lens], "default": 1}
    inputs = flash.inputs | {"properties": flash.inputs["properties"] | {"times": times}}
    return replace(flash, description=f"{flash.description} The {state.lens} lens is in.", inputs=inputs)


@tool(
    "Flash the lamp",
    {"message": {"type": "string", "default": "ahoy", "maxLength": 80}, "times": {"type": "integer"}},
    hints=WRITES,
    fit=_flashes_of_this_lens,
)
def flash_lamp(call: DemoCall) -> Json:
    """Flashes a message to all ships. Its definition changes with the lens, so it must be approved again."""
    times = call.arguments["times"]
    often = "once" if times == 1 else f"{times} times"
    return text(f"“{call.arguments['message']}”, {often}, through the {call.state.lens} lens.")


@tool(
    "Fit a lens",
    {"lens": {"type": "string", "enum": list(LENSES), "default": "fourth-order"}},
    hints=WRITES | {"idempotentHint": True},
)
def fit_lens(call: DemoCall) -> Json:
    """Fits another lens. That changes the definition of flash_lamp, and says so."""
    before, call.state.lens = call.state.lens, call.arguments["lens"]
    if before != call.state.lens:
        call.tools_changed()
    return text(f"The {call.state.lens} lens is in; before, it was {before}.")


@tool("Open or shut the boathouse", hints=WRITES)
def open_boathouse(call: DemoCall) -> Json:
    """Opens the boathouse, which brings one more tool, row_boat; or shuts it, which takes that away."""
    with call.state.lock:
        call.state.boathouse_open = is_open = not call.state.boathouse_open
    call.tools_changed()
    return text("The boathouse is open: you can row_boat now." if is_open else "The boathouse is shut.")


@tool("Hail a ship", {
    "name": {"type": "string", "default": "Marie Celestial", "description": "As ships_in_sight has it"},
}, hints={"readOnlyHint": True, "openWorldHint": True})  # fmt: skip
def hail_ship(call: DemoCall) -> Json:
    """Calls a ship by radio. One of them never answers, and strangers do not either: then the tool fails."""
    name = call.arguments["name"]
    if not any(ship.name == name and ship.answers for ship in SHIPS):
        raise ToolFailedError(f"Nothing but static. {name} does not answer. Try the Kittiwake.")
    return text(f"{name} to Puffin Stack: we see your light. Thank you for keeping it on.")


@tool("Ask the ghost", {"question": {"type": "string", "default": "Who goes there?"}}, hints={"readOnlyHint": True})
def ask_ghost(call: DemoCall) -> NoReturn:
    """Asks the keeper of 1887. He answers in protocol errors only (-32602)."""
    raise InvalidParamsError(f"“{call.arguments['question']}” is not a question the ghost accepts.")


@tool("Put out the light", hints=DESTROYS)
def put_out_light(call: DemoCall) -> NoReturn:
    """Puts out the light, which crashes this server at once. Good for watching a host reconnect."""
    sys.stderr.write("The light is out. Exit without a word.\n")
    sys.stderr.flush()
    os._exit(CRASH_EXIT_CODE)


@tool("Row the boat", shown=lambda state: state.boathouse_open)
def row_boat(call: DemoCall) -> Json:
    """Rows once around the rock. Only there while the boathouse is open."""
    return text("Once around. A seal followed you, out of concern.")


TOOLS = (
    keep_logbook,
    read_logbook,
    hail_ship,
    flash_lamp,
    fit_lens,
    open_boathouse,
    row_boat,
    feed_gulls,
    ask_ghost,
    tear_out_pages,
    put_out_light,
)
