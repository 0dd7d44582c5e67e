"""The demo server's resources, and its template for the ships."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote, unquote

from mcphost.demo import skills
from mcphost.demo.lighthouse import SHIPS, Lighthouse, Ship
from mcphost.demo.media import view
from mcphost.demo.results import CHART, CHART_URI, HANDBOOK, readings
from mcphost.demo.revisions import trimmed
from mcphost.demo.state_changes import LOGBOOK_URI, pages
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError
from mcphost.serving.served_request import Json

INSTRUMENTS_URI = "lighthouse://instruments"
SHIPS_URI = "lighthouse://ships/"
SHIP_TEMPLATE = "lighthouse://ships/{kind}/{name}"
LAMP = '''\
"""The clockwork of the lamp."""

ON, OFF = 2.0, 3.0  # seconds


def pattern(flashes: int) -> list[tuple[str, float]]:
    """What the lamp does for so many flashes."""
    return [("on", ON), ("off", OFF)] * flashes
'''


@dataclass(frozen=True, slots=True)
class DemoResource:
    """A resource; ``read`` returns text or bytes."""

    uri: str
    name: str
    title: str
    mime_type: str
    about: str
    read: Callable[[Lighthouse], str | bytes]
    priority: float = 0.5

    def definition(self) -> Json:
        """The item of resources/list, in the newest revision's shape."""
        return {
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "mimeType": self.mime_type,
            "annotations": {"audience": ["user", "assistant"], "priority": self.priority},
        }

    def contents(self, state: Lighthouse) -> Json:
        found = self.read(state)
        held = {"text": found} if isinstance(found, str) else {"blob": base64.b64encode(found).decode()}
        return {"uri": self.uri, "mimeType": self.mime_type, **held}


RESOURCES = (
    DemoResource(
        LOGBOOK_URI, "logbook", "Logbook", "text/markdown", "Changes with keep_logbook: watch it.", pages, 1.0
    ),
    DemoResource(
        "lighthouse://handbook", "handbook", "The keeper's handbook", "text/markdown", "Rules.", lambda _: HANDBOOK
    ),
    DemoResource(
        CHART_URI, "puffin-stack", "Chart of Puffin Stack", "text/plain", "Soundings in fathoms.", lambda _: CHART
    ),
    DemoResource(
        INSTRUMENTS_URI, "instruments", "Instruments", "application/json", "What they read now.",
        lambda state: json.dumps(readings(state)),
    ),
    DemoResource(
        "lighthouse://lamp.py", "lamp.py", "How the lamp turns", "text/x-python", "Code.", lambda _: LAMP, 0.2
    ),
    DemoResource(
        "lighthouse://view/dusk.png", "dusk.png", "The view at dusk", "image/png", "A picture.",
        lambda _: view(19, lamp=True),
    ),
    DemoResource(
        "lighthouse://tide.bin", "tide.bin", "Tide gauge", "application/octet-stream", "Bytes.",
        lambda _: bytes(range(256)),
    ),
)  # fmt: skip

CHANGING = (LOGBOOK_URI, INSTRUMENTS_URI)
"""Resources that change with each call, or all the time: their contents are never fresh."""

TEMPLATES: Sequence[Json] = (
    {
        "uriTemplate": SHIP_TEMPLATE,
        "name": "ship",
        "title": "A ship in sight",
        "description": "What is known of one ship. Its name is suggested once the kind is chosen.",
        "mimeType": "application/json",
    },
)


def read(uri: object, state: Lighthouse) -> Json | None:
    """The contents of a resource, listed or made of the template; None if this URI does not exist."""
    resource = next((each for each in RESOURCES if each.uri == uri), None)
    if resource is not None:
        return resource.contents(state)
    ship = _ship(uri) if isinstance(uri, str) else None
    if ship is None:
        return skills.contents(uri)
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(ship.row())}


def suggestions(argument: str, known: Json) -> list[str]:
    """Suggestions for a variable of the template, given the others."""
    kind = known.get("kind")
    if argument == "kind":
        return sorted({ship.kind for ship in SHIPS})
    return [ship.name for ship in SHIPS if kind in (None, "", ship.kind)] if argument == "name" else []


def _ship(uri: str) -> Ship | None:
    kind, _, name = uri.removeprefix(SHIPS_URI).partition("/")
    found = (ship for ship in SHIPS if (quote(ship.kind), ship.name) == (kind, unquote(name)))
    return next(found, None) if uri.startswith(SHIPS_URI) else None


class ResourceMethods:
    """The methods for resources."""

    def __init__(self, state: Lighthouse) -> None:
        self._state = state
        self.methods: dict[str, Callable[[Json, Revision], Json]] = {
            "resources/list": lambda params, revision: {
                "resources": _listed((each.definition() for each in RESOURCES), revision)
            },
            "resources/templates/list": lambda params, revision: {"resourceTemplates": _listed(TEMPLATES, revision)},
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": lambda params, revision: {},
        }

    def _read(self, params: Json, revision: Revision) -> Json:
        if not isinstance(params.get("uri"), str):
            raise RpcError(ErrorCode.INVALID_PARAMS, "The keeper needs the uri of what to fetch, as a string.")
        contents = read(params["uri"], self._state)
        if contents is None:
            words = f"There is nothing called {params.get('uri')} on the shelf."
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, words, {"uri": params.get("uri")})
        return {"contents": [contents]} | ({"ttlMs": 0} if contents["uri"] in CHANGING else {})

    def _subscribe(self, params: Json, revision: Revision) -> Json:
        self._read(params, revision)
        return {}


def _listed(definitions: Iterable[Json], revision: Revision) -> list[Json]:
    return [trimmed("resource", each, revision) for each in definitions]
