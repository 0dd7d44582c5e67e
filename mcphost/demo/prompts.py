"""The demo server's prompts, with suggestions for their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcphost.demo import resources
from mcphost.demo.lighthouse import SHIPS, Lighthouse
from mcphost.demo.state_changes import LOGBOOK_URI
from mcphost.demo.tool import InvalidParamsError, Json

WATCHES = ("first", "middle", "morning")
TONES = ("dry", "grave", "homesick", "proud", "seasick", "sleepless", "smug", "sunny")

Given = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Argument:
    """What a prompt wants to be told; ``choices`` are suggested, in the light of the other arguments."""

    name: str
    title: str
    about: str
    choices: Callable[[Json], Sequence[str]]
    required: bool = False

    def definition(self) -> Json:
        """As prompts/list shows it."""
        return {"name": self.name, "title": self.title, "description": self.about, "required": self.required}


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt; ``write`` makes its messages."""

    name: str
    title: str
    about: str
    arguments: tuple[Argument, ...]
    write: Callable[[Given, Lighthouse], list[Json]]

    def definition(self) -> Json:
        """As prompts/list shows it, in the newest revision's shape."""
        asked = [each.definition() for each in self.arguments]
        return {"name": self.name, "title": self.title, "description": self.about, "arguments": asked}

    def messages(self, given: Given, station: Lighthouse) -> list[Json]:
        """What it becomes. Raises InvalidParamsError where something required is missing."""
        missing = [each.name for each in self.arguments if each.required and not given.get(each.name)]
        if missing:
            raise InvalidParamsError(f"The letter {self.name} needs: {', '.join(missing)}.")
        return self.write(given, station)


def _say(role: str, words: str) -> Json:
    return {"role": role, "content": {"type": "text", "text": words}}


def _report(given: Given, station: Lighthouse) -> list[Json]:
    tone = given.get("tone") or TONES[0]
    logbook = {"type": "resource", "resource": resources.read(LOGBOOK_URI, station)}
    return [
        _say("user", f"Write the report of the **{given['watch']} watch** in a {tone} tone. The logbook is below."),
        {"role": "user", "content": logbook},
        _say("assistant", f"Puffin Stack, {given['watch']} watch."),
    ]


def _hail(given: Given, station: Lighthouse) -> list[Json]:
    ship = next((each for each in SHIPS if each.name == given["ship"]), None)
    if ship is None:
        raise InvalidParamsError(f"No ship called {given['ship']} is in sight.")
    return [_say("user", f"Hail the {ship.kind} {ship.name}, {ship.distance} miles off at {ship.bearing}°. Be brief.")]


PROMPTS = (
    DemoPrompt(
        "watch_report", "Report of a watch", "Asks for a report of one watch, with the logbook enclosed.",
        (
            Argument("watch", "Watch", "Whose watch it was", lambda known: WATCHES, required=True),
            Argument("tone", "Tone", "How it should sound", lambda known: TONES),
        ),
        _report,
    ),
    DemoPrompt(
        "hail_ship", "Hail a ship", "Asks for words to shout at a ship.",
        (
            Argument("kind", "Kind of ship", "Narrows the suggestions for the ship",
                     lambda known: resources.suggestions("kind", known)),
            Argument("ship", "Ship", "Its name", lambda known: resources.suggestions("name", known), required=True),
        ),
        _hail,
    ),
)  # fmt: skip


def find_prompt(name: object) -> DemoPrompt:
    """The prompt of this name. Raises InvalidParamsError."""
    for each in PROMPTS:
        if each.name == name:
            return each
    raise InvalidParamsError(f"There is no letter {name} in the drawer.")


def suggestions(prompt: object, argument: str, known: Json) -> Sequence[str]:
    """What may stand for an argument. Raises InvalidParamsError where there is no such prompt."""
    asked = next((each for each in find_prompt(prompt).arguments if each.name == argument), None)
    return asked.choices(known) if asked else ()
