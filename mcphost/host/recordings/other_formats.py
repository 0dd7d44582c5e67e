"""Cassettes of mcp-recorder (JSON, version 1) and records of mcporter (JSON Lines), as lines of traffic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mcphost.errors import NotDone
from mcphost.host.traffic.file import MessageRecord
from mcphost.json_values import as_dict, as_text, dicts_in, is_number

_DIRECTIONS: Final = {"send": True, "recv": False}


def other_lines(content: bytes, name: str) -> Iterator[MessageRecord] | None:
    """The messages of a file of another program; None for any other file. Raises NotDone for a wrong one."""
    start = content.lstrip()[:1]
    if start != b"{":
        return None
    first = _parsed(content.lstrip().partition(b"\n")[0])
    if first is not None and as_text(as_dict(first.get("_meta")).get("dir")):
        return _of_mcporter(content, name)
    whole = None if first is not None and "text" in first else _parsed(content)
    if whole is not None and "interactions" in whole:
        return _of_cassette(whole, name)
    return None


def _of_mcporter(content: bytes, name: str) -> Iterator[MessageRecord]:
    """Messages with a member ``_meta`` of its own: ``dir`` (``send``, ``recv``, ``lifecycle``), ``server``, ``ts``."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        message = _parsed(line)
        meta = as_dict((message or {}).pop("_meta", None))
        if message is None or not isinstance(meta.get("dir"), str):
            raise NotDone(f"{name}, line {number}: this is not a line of an mcporter record")
        if meta["dir"] in _DIRECTIONS:
            yield _record(message, as_text(meta.get("server")), _DIRECTIONS[meta["dir"]], _time(meta.get("ts")), number)


def _of_cassette(cassette: Mapping[str, Any], name: str) -> Iterator[MessageRecord]:
    if as_text(cassette.get("version")).partition(".")[0] != "1":
        raise NotDone(f"{name}: this cassette is not of version 1; record it again with a current mcp-recorder")
    facts = as_dict(cassette.get("metadata"))
    server = as_text(as_dict(facts.get("server_info")).get("name")) or name.partition(".")[0]
    time = _time(facts.get("recorded_at"))
    for interaction in dicts_in(cassette["interactions"]):
        request, response = interaction.get("request"), interaction.get("response")
        latency = interaction.get("latency_ms")
        if isinstance(request, dict):
            yield _record(request, server, True, time)
        time += latency / 1000 if is_number(latency) and 0 <= latency < 1e9 else 0
        if isinstance(response, dict):
            yield _record(response, server, False, time)


def _record(message: Mapping[str, Any], server: str, sent: bool, time: float, line: int = 0) -> MessageRecord:
    data = json.dumps(message).encode()
    return MessageRecord(time, server, 1, sent, "", data, len(data), None, "", False, None, line)


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _time(text: object) -> float:
    try:
        when = datetime.fromisoformat(as_text(text))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
