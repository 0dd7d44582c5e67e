"""The demo server's skills: instructions for a model that keeps the lighthouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

from mcphost.demo.lighthouse import LENSES
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.serving.negotiation import InvalidParamsError
from mcphost.serving.served_request import Json

WATCH = """\
---
name: keep-watch
description: Keeps one watch on Puffin Stack. Use it when someone asks for a watch, or what to do at dusk.
license: MIT
---

# Keep a watch

1. Call `read_instruments`, then `ships_in_sight`.
2. At dusk, call `flash_lamp`; [the table of lenses](references/lenses.md) says how many flashes a lens can give.
3. Hail the ships that are nearer than three miles with `hail_ship`. One failure is no reason for a second call.
4. Write two sentences with `keep_logbook`: what came by, and what the weather did.

Ask the keeper before you put out the light.
"""

FOG = """\
---
name: fog-routine
description: Says what to do in fog. Use it when the visibility falls below two miles.
---

# In fog

Call `sound_foghorn` once, and read the instruments again. Write the time into the logbook.
"""

FILES: Mapping[str, str] = {
    "skill://keep-watch/SKILL.md": WATCH,
    "skill://keep-watch/references/lenses.md": "\n".join(
        ["# Lenses", "", "| lens | flashes |", "|---|---:|", *(f"| {lens} | {most} |" for lens, most in LENSES.items())]
    ),
    "skill://fog-routine/SKILL.md": FOG,
}


def _entry(uri: str) -> Json:
    """The entry of the skill whose SKILL.md has this URI; its frontmatter is a line for each field."""
    folder = uri.removesuffix("SKILL.md")
    block = FILES[uri].split("---\n")[1]
    resources = [
        {"uri": name, "digest": f"sha256:{sha256(text.encode()).hexdigest()}", "size": len(text.encode())}
        for name, text in FILES.items()
        if name.startswith(folder)
    ]
    return {"uri": uri, "frontmatter": dict(line.split(": ", 1) for line in block.splitlines()), "resources": resources}


ENTRIES: Mapping[str, Json] = {uri: _entry(uri) for uri in FILES if uri.endswith("/SKILL.md")}


def contents(uri: object) -> Json | None:
    """The contents of a file of a skill; None if this URI is not one."""
    text = FILES.get(uri) if isinstance(uri, str) else None
    return None if text is None else {"uri": uri, "mimeType": "text/markdown", "text": text}


def _get(params: Json, revision: Revision) -> Json:
    entry = ENTRIES.get(params.get("uri", ""))
    if entry is None:
        raise InvalidParamsError(f"There is no skill {params.get('uri')} on the shelf.")
    return {"skill": entry}


METHODS: Mapping[str, Callable[[Json, Revision], Json]] = {
    "skills/list": lambda params, revision: {"skills": list(ENTRIES.values())},
    "skills/get": _get,
}
