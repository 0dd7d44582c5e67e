"""Prompts, and completion of their arguments and of the variables of resource templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mcphost.demo import resources
from mcphost.demo.lighthouse import SHIPS, Lighthouse
from mcphost.demo.revisions import trimmed
from mcphost.demo.state_changes import LOGBOOK_URI
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.serving.negotiation import InvalidParamsError
from mcphost.serving.served_request import Json

MOST_VALUES = 100

WATCHES = ("first", "middle", "morning")
TONES = ("dry", "grave", "homesick", "proud", "seasick", "sleepless", "smug", "sunny")

Given = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt; ``choices`` returns suggestions, given the other arguments."""

    name: str
    title: str
    about: str
    choices: Callable[[Json], Sequence[str]]
    required: bool = False

    def definition(self) -> Json:
        """The argument in prompts/list."""
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
        """The item of prompts/list, in the newest revision's shape."""
        asked = [each.definition() for each in self.arguments]
        return {"name": self.name, "title": self.title, "description": self.about, "arguments": asked}

    def messages(self, given: Given, state: Lighthouse) -> list[Json]:
        """The messages. Raises InvalidParamsError if a required argument is missing."""
        missing = [each.name for each in self.arguments if each.required and not given.get(each.name)]
        if missing:
            raise InvalidParamsError(f"The letter {self.name} needs: {', '.join(missing)}.")
        return self.write(given, state)


def _say(role: str, words: str) -> Json:
    return {"role": role, "content": {"type": "text", "text": words}}


def _report(given: Given, state: Lighthouse) -> list[Json]:
    tone = given.get("tone") or TONES[0]
    logbook = {"type": "resource", "resource": resources.read(LOGBOOK_URI, state)}
    return [
        _say("user", f"Write the report of the **{given['watch']} watch** in a {tone} tone. The logbook is below."),
        {"role": "user", "content": logbook},
        _say("assistant", f"Puffin Stack, {given['watch']} watch."),
    ]


def _hail(given: Given, state: Lighthouse) -> list[Json]:
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
    """Suggestions for an argument. Raises InvalidParamsError if the prompt does not exist."""
    asked = next((each for each in find_prompt(prompt).arguments if each.name == argument), None)
    return asked.choices(known) if asked else ()


class PromptMethods:
    """The methods for prompts and completion."""

    def __init__(self, state: Lighthouse) -> None:
        self._state = state
        self.methods: dict[str, Callable[[Json, Revision], Json]] = {
            "prompts/list": lambda params, revision: {"prompts": [_listed(each, revision) for each in PROMPTS]},
            "prompts/get": self._get,
            "completion/complete": self._complete,
        }

    def _get(self, params: Json, revision: Revision) -> Json:
        prompt, given = find_prompt(params.get("name")), _object(params, "arguments")
        if not all(isinstance(each, str) for each in given.values()):
            raise InvalidParamsError("The arguments of a letter are strings.")
        return {"description": prompt.about, "messages": prompt.messages(given, self._state)}

    def _complete(self, params: Json, revision: Revision) -> Json:
        ref, argument = _object(params, "ref"), _object(params, "argument")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise InvalidParamsError("argument has a name and a value.")
        known = _object(_object(params, "context"), "arguments")
        if ref.get("type") == "ref/prompt":
            choices = suggestions(ref.get("name"), name, known)
        elif (ref.get("type"), ref.get("uri")) == ("ref/resource", resources.SHIP_TEMPLATE):
            choices = resources.suggestions(name, known)
        else:
            raise InvalidParamsError("That ref is none of ours.")
        found = [each for each in choices if each.lower().startswith(typed.lower())]
        return {"completion": {"values": found[:MOST_VALUES], "total": len(found), "hasMore": False}}


def _listed(prompt: DemoPrompt, revision: Revision) -> Json:
    found = trimmed("prompt", prompt.definition(), revision)
    return found | {"arguments": [trimmed("prompt", each, revision) for each in found["arguments"]]}


def _object(params: Json, name: str) -> Json:
    found = params.get(name) or {}
    if not isinstance(found, dict):
        raise InvalidParamsError(f"{name} is an object.")
    return found
