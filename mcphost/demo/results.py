"""The tools that show each kind of result: a table, JSON, Markdown, a picture, a sound, resources."""

from __future__ import annotations

import base64
import json

from mcphost.demo.lighthouse import SHIPS, Lighthouse
from mcphost.demo.media import foghorn, view
from mcphost.demo.tool import DemoCall, text, tool
from mcphost.serving.served_request import Json

READS = {"readOnlyHint": True, "openWorldHint": False}
ANY = "any"
ROW = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "kind": {"type": "string", "title": "Kind"},
        "distance_miles": {"type": "number", "title": "Nautical miles"},
        "bearing_degrees": {"type": "integer", "title": "Bearing", "minimum": 0, "maximum": 359},
        "speed_knots": {"type": "number", "title": "Knots"},
        "answers_hails": {"type": "boolean", "title": "Answers"},
    },
    "required": ["name", "kind", "distance_miles", "bearing_degrees", "speed_knots", "answers_hails"],
}
TABLE = {
    "type": "object",
    "properties": {"ships": {"type": "array", "items": ROW}, "lookout": {"type": "string"}},
    "required": ["ships", "lookout"],
}
KINDS = (ANY, "ferry", "freighter", "tall ship", "trawler", "tug")


@tool(
    "Ships in sight",
    {
        "kind": {"type": "string", "enum": list(KINDS), "default": ANY, "description": "Only ships of this kind"},
        "within_miles": {"type": "number", "minimum": 0, "maximum": 20, "default": 20, "title": "Within (miles)"},
    },
    output=TABLE,
    hints=READS,
)
def ships_in_sight(call: DemoCall) -> Json:
    """Lists the ships that can be seen from the gallery, as a table. A good first call."""
    kind, within = call.arguments["kind"], call.arguments["within_miles"]
    rows = [ship.row() for ship in SHIPS if kind in (ANY, ship.kind) and ship.distance <= within]
    found = {"ships": rows, "lookout": "north gallery"}
    return text(json.dumps(found, indent=2), structuredContent=found)


@tool("Read the instruments", hints=READS | {"idempotentHint": True})
def read_instruments(call: DemoCall) -> Json:
    """Reads barometer, thermometer and wind vane. The answer is JSON inside plain text."""
    return text(json.dumps(readings(call.state), indent=2))


def readings(state: Lighthouse) -> Json:
    """The present readings of the instruments."""
    return {
        "pressure_hpa": 1008.4,
        "trend": "falling slowly",
        "temperature_c": 9.5,
        "wind": {"from": "WSW", "force": 5, "gusts": [6, 7, 6]},
        "lamp": {"lens": state.lens, "lit": True},
        "kettle": "on",
    }


@tool("Paint the view", {
    "hour": {"type": "integer", "minimum": 0, "maximum": 23, "default": 22, "description": "Hour of the day"},
    "lamp": {"type": "boolean", "default": True, "title": "Lamp lit"},
}, hints=READS)  # fmt: skip
def paint_view(call: DemoCall) -> Json:
    """Paints the lighthouse from the sea, at any hour you like. The answer holds a PNG."""
    hour, lamp = call.arguments["hour"], call.arguments["lamp"]
    picture = _base64(view(hour, lamp=lamp))
    result = text(f"Puffin Stack at {hour:02}:00, in oils. Still wet.")
    result["content"].append({"type": "image", "mimeType": "image/png", "data": picture})
    return result


@tool("Sound the foghorn", {
    "blasts": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
    "pitch_hertz": {"type": "number", "minimum": 60, "maximum": 440, "default": 110},
}, hints=READS)  # fmt: skip
def sound_foghorn(call: DemoCall) -> Json:
    """Sounds the foghorn. The answer holds a WAV; the puffins have been warned."""
    blast = _base64(foghorn(call.arguments["blasts"], call.arguments["pitch_hertz"]))
    result = text("BAAAAOOOOH. " * call.arguments["blasts"])
    result["content"].append({"type": "audio", "mimeType": "audio/wav", "data": blast})
    return result


CHART_URI = "lighthouse://charts/puffin-stack"
CHART = """\
              N
      .  .  ~ | ~   Gannet Bank (4 fathoms)
   ~     ~    |        ~
  W --- [Puffin Stack] --- E
   ~   reef x |    ~
      x x     |  ~     The Teapot (awash)
              S
"""


@tool("Fetch a chart", {
    "how": {
        "type": "string",
        "title": "Hand it over",
        "oneOf": [
            {"const": "inside", "title": "inside the answer"},
            {"const": "link", "title": "as a link"},
            {"const": "both", "title": "both ways"},
        ],
        "default": "both",
    },
}, hints=READS)  # fmt: skip
def fetch_chart(call: DemoCall) -> Json:
    """Fetches the chart of these waters: as a resource inside the answer, as a link to one, or both."""
    inside = {"type": "resource", "resource": {"uri": CHART_URI, "mimeType": "text/plain", "text": CHART}}
    link = {
        "type": "resource_link",
        "uri": CHART_URI,
        "name": "puffin-stack",
        "title": "Chart of Puffin Stack",
        "description": "Soundings in fathoms. Not to be used for navigation.",
        "mimeType": "text/plain",
        "size": len(CHART.encode()),
    }
    return {"content": {"inside": [inside], "link": [link], "both": [inside, link]}[call.arguments["how"]]}


@tool("Read the handbook", hints=READS)
def read_handbook(call: DemoCall) -> Json:
    """Opens the keeper's handbook. The answer is Markdown."""
    return text(HANDBOOK)


HANDBOOK = """\
# The keeper's handbook

Rules for **every** watch on *Puffin Stack*:

1. Light the lamp at dusk.
2. Write it down (`keep_logbook`), then put the kettle on.
3. Never argue with the gulls.

| Watch   | From  | To    | Biscuits |
|---------|------:|------:|---------:|
| first   | 20:00 | 00:00 |        2 |
| middle  | 00:00 | 04:00 |        4 |
| morning | 04:00 | 08:00 |        1 |

> A light that goes out is noticed. A light that stays on is home.

```text
flash   2 s on, 3 s off
```

More under [lighthouse://charts/puffin-stack](lighthouse://charts/puffin-stack).
"""


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


TOOLS = (ships_in_sight, read_instruments, paint_view, sound_foghorn, fetch_chart, read_handbook)
