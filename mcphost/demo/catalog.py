"""The demo server's methods for resources, prompts, completion and subscriptions: params in, results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcphost.demo import prompts, resources
from mcphost.demo.lighthouse import Lighthouse
from mcphost.demo.revisions import trimmed
from mcphost.demo.tool import InvalidParamsError, Json

MOST_VALUES = 100


class NotFoundError(Exception):
    """No resource of this URI: JSON-RPC code -32002."""


class DemoCatalog:
    """``revision`` returns the one that was negotiated."""

    def __init__(self, station: Lighthouse, revision: Callable[[], str]) -> None:
        self._station, self._revision = station, revision
        self._watched: set[str] = set()
        self.methods: dict[str, Callable[[Json], Json]] = {
            "resources/list": lambda params: {
                "resources": self._resources(each.definition() for each in resources.RESOURCES)
            },
            "resources/templates/list": lambda params: {"resourceTemplates": self._resources(resources.TEMPLATES)},
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": lambda params: {"prompts": [self._prompt(each) for each in prompts.PROMPTS]},
            "prompts/get": self._get,
            "completion/complete": self._complete,
        }  # fmt: skip

    def is_watched(self, uri: str) -> bool:
        """Does the client want to hear of changes?"""
        return uri in self._watched

    def _resources(self, definitions: Iterable[Json]) -> list[Json]:
        return [self._of("resource", each) for each in definitions]

    def _of(self, what: str, members: Json) -> Json:
        return trimmed(what, members, self._revision())

    def _prompt(self, letter: prompts.DemoPrompt) -> Json:
        found = self._of("prompt", letter.definition())
        return found | {"arguments": [self._of("prompt", each) for each in found["arguments"]]}

    def _read(self, params: Json) -> Json:
        contents = resources.read(params.get("uri"), self._station)
        if contents is None:
            raise NotFoundError(f"There is nothing called {params.get('uri')} on the shelf.")
        return {"contents": [contents]}

    def _subscribe(self, params: Json) -> Json:
        self._watched.add(self._read(params)["contents"][0]["uri"])
        return {}

    def _unsubscribe(self, params: Json) -> Json:
        self._watched.discard(str(params.get("uri")))
        return {}

    def _get(self, params: Json) -> Json:
        letter, given = prompts.find_prompt(params.get("name")), _object(params, "arguments")
        if not all(isinstance(each, str) for each in given.values()):
            raise InvalidParamsError("The arguments of a letter are strings.")
        return {"description": letter.about, "messages": letter.messages(given, self._station)}

    def _complete(self, params: Json) -> Json:
        ref, argument = _object(params, "ref"), _object(params, "argument")
        name, typed = str(argument.get("name")), str(argument.get("value", "")).lower()
        known = _object(_object(params, "context"), "arguments")
        if ref.get("type") == "ref/prompt":
            choices = prompts.suggestions(ref.get("name"), name, known)
        elif (ref.get("type"), ref.get("uri")) == ("ref/resource", resources.SHIP_TEMPLATE):
            choices = resources.suggestions(name, known)
        else:
            raise InvalidParamsError("That ref is none of ours.")
        found = [each for each in choices if each.lower().startswith(typed)]
        return {"completion": {"values": found[:MOST_VALUES], "total": len(found), "hasMore": False}}


def _object(params: Json, name: str) -> Json:
    found = params.get(name) or {}
    if not isinstance(found, dict):
        raise InvalidParamsError(f"{name} is an object.")
    return found
