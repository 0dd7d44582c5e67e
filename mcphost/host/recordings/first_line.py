"""The first line of a recording, with the facts of the run whose messages follow."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from mcphost.errors import NotDone
from mcphost.host.recordings.recording import FORMAT, RecordingFacts
from mcphost.json_values import as_dict, as_text

META: Final = "meta"
"""The kind and note of such a line."""


def first_line(facts: RecordingFacts, connection: int = 0) -> bytes:
    """The facts as a line of traffic, with its newline; of one ``connection``, or 0 for all of the run."""
    text = json.dumps({**facts._asdict(), "servers": dict(facts.servers)})
    fields = {
        "time": datetime.now(UTC).isoformat(),
        "server": "",
        "connection": connection,
        "direction": "in",
        "kind": META,
        "note": META,
        "text": text,
        "size": len(text),
    }
    return json.dumps(fields).encode("ascii") + b"\n"


def facts_in(text: bytes, place: str) -> RecordingFacts:
    """The facts in the text of such a line. Raises NotDone, naming the ``place``, for what is none."""
    try:
        fields = as_dict(json.loads(text))
    except (ValueError, RecursionError):
        raise NotDone(f"{place}: the facts of the recording are not JSON") from None
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise NotDone(f"{place}: the facts of the recording name no version")
    if version > FORMAT:
        raise NotDone(f"{place}: this recording is of format {version}, and mcphost reads {FORMAT}; update mcphost")
    servers = {key: value for key, value in as_dict(fields.get("servers")).items() if isinstance(value, str)}
    program, recorded_by, seen = (as_text(fields.get(each)) for each in ("mcphost", "recorded_by", "seen"))
    return RecordingFacts(version, program, recorded_by, seen, servers, fields.get("masked") is not False)
