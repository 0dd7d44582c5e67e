"""The slow tools: progress with and without a total, and a storm of log messages."""

from __future__ import annotations

import sys

from mcphost.demo.tool import DemoCall, text, tool
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.served_request import Json

HARMLESS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
FLOORS = (
    "the door, swollen by salt",
    "the oil store",
    "the kitchen, where the kettle sings",
    "the bunk room; somebody snores",
    "the library, eleven books",
    "a window, a surprised puffin",
    "the watch room",
    "the lens, ticking round",
    "the gallery",
)
STEPS = 199


@tool(
    "Climb the tower",
    {"seconds": {"type": "number", "minimum": 0, "maximum": 600, "default": 9, "title": "Seconds for the climb"}},
    hints=HARMLESS | {"idempotentHint": True},
    slow=True,
)
def climb_tower(call: DemoCall) -> Json:
    """Climbs the 199 steps and reports each floor. Takes a while; cancel it to be called back down."""
    for number, floor in enumerate(FLOORS, start=1):
        call.wait(call.arguments["seconds"] / len(FLOORS))
        call.progress(STEPS * number // len(FLOORS), STEPS, floor)
    return text("At the top, out of breath. You can see the mainland from here, and it can see you.")


@tool(
    "Watch the horizon",
    {"seconds": {"type": "number", "minimum": 0, "maximum": 600, "default": 6, "title": "Seconds to watch"}},
    hints={"readOnlyHint": True},
    slow=True,
)
def watch_horizon(call: DemoCall) -> Json:
    """Counts the waves for some seconds. Reports progress without a total, since the number of waves is unknown."""
    waves, pause = 0, 0.25
    for look in range(int(call.arguments["seconds"] / pause)):
        call.wait(pause)
        waves += 1 + look % 3
        call.progress(waves, message=f"{waves} waves")
    return text(f"{waves} waves, one seal, no whales.")


LEGS = (
    "rowing out, against the tide",
    "at the mainland, looking for an open shop",
    "buying it, and hearing the news twice",
    "rowing back, lower in the water",
    "under the cliff, waiting for the crane",
)


@tool(
    "Send for supplies",
    {
        "what": {"type": "string", "default": "tea", "minLength": 1, "maxLength": 80, "title": "What to bring"},
        "seconds": {"type": "number", "minimum": 0, "maximum": 600, "default": 20, "title": "Seconds it takes"},
    },
    hints=HARMLESS,
    slow=True,
    as_task=True,
)
def send_for_supplies(call: DemoCall) -> Json:
    """Sends the boat to the mainland. Runs as a task: it can be listed, stopped and asked for its result later."""
    for number, leg in enumerate(LEGS, start=1):
        call.progress(number - 1, len(LEGS), leg)
        call.wait(call.arguments["seconds"] / len(LEGS))
    call.progress(len(LEGS), len(LEGS), "home, and dry")
    return text(f"Here is {call.arguments['what']}, slightly salted, and yesterday's newspaper.")


STORM = (
    (LogLevel.DEBUG, "weather", "a cloud the size of a thumb"),
    (LogLevel.INFO, "weather", {"wind": "WSW", "force": 7}),
    (LogLevel.NOTICE, "keeper", "closing the shutters"),
    (LogLevel.WARNING, "weather", {"wind": "W", "force": 9, "note": "gale"}),
    (LogLevel.ERROR, "lamp", "the clockwork jammed; turning the lens by hand"),
    (LogLevel.CRITICAL, "weather", ["spray on the gallery", "spray in the tea"]),
    (LogLevel.ALERT, "keeper", "the boathouse door is loose"),
    (LogLevel.EMERGENCY, "keeper", "we are out of biscuits"),
)
MOST_LINES = 500


@tool(
    "Brew a storm",
    {
        "lines": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "default": 16, "title": "Log messages"},
        "on_stderr": {"type": "integer", "minimum": 0, "maximum": MOST_LINES, "default": 4, "title": "Lines on stderr"},
        "seconds": {"type": "number", "minimum": 0, "maximum": 60, "default": 2, "title": "Seconds it takes"},
    },
    hints=HARMLESS,
    slow=True,
)
def brew_storm(call: DemoCall) -> Json:
    """Becomes very chatty: log messages at all eight levels, and some lines on stderr."""
    lines, on_stderr = call.arguments["lines"], call.arguments["on_stderr"]
    for number in range(on_stderr):
        sys.stderr.write(f"[storm] barometer {1008 - number} hPa and falling\n")
    sys.stderr.flush()
    for number in range(lines):
        call.wait(call.arguments["seconds"] / lines)
        level, logger, data = STORM[number % len(STORM)]
        call.log(level, data, logger)
    return text(f"It blew over: {lines} log messages, {on_stderr} lines on stderr. Which did you get to see?")


TOOLS = (climb_tower, watch_horizon, send_for_supplies, brew_storm)
