"""A call that ended, as the history keeps it, and the search for such calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from mcphost.config import entry_of
from mcphost.errors import InvalidResult, PastFailure
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text
from mcphost.protocol.models.tools import CallToolResult
from mcphost.redaction import MASK, Mask

PAGE: Final = 200
"""Calls that are read at once."""

SEARCHED_CHARACTERS: Final = 400
"""Characters of the arguments in which words are sought, so that a search reads little."""

FIELD_CHARACTERS: Final = 1000
"""Characters of names and of an error, which a model or a server may have written."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that ended. Those of earlier runs have their secrets masked; their results are read by themselves."""

    id: int
    """The number of its row in the history; 0: a call of this run, which is not read from there."""
    run: str
    number: int
    """The number of the call in its run."""
    time: float
    """When it was asked for, in seconds since 1970."""
    server: str
    identity: str
    """The program or address of the server."""
    tool: str
    origin: str
    """The asking party."""
    state: CallState
    duration: float
    sent: bool
    error: str
    """The reason for a missing result, else empty."""
    argument_text: str | None
    """The arguments as JSON; None: they were too large to keep."""
    result_size: int | None = None
    """Bytes of the result as JSON; None without a result."""
    result_digest: str = ""
    """The SHA-256 of the result as JSON, if it was too large to keep."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments; empty if they were not kept or cannot be read."""
        with suppress(ValueError, RecursionError):
            return as_dict(json.loads(self.argument_text or "{}"))
        return {}

    @property
    def searched_arguments(self) -> str:
        """The start of the arguments, in which words are sought."""
        return (self.argument_text or "")[:SEARCHED_CHARACTERS]

    @property
    def has_result(self) -> bool:
        """True if the history has the whole result."""
        return self.result_size is not None and not self.result_digest

    @property
    def name(self) -> str:
        """The time of a kept call, or the number of one of this run."""
        return moment_text(self.time) if self.id else f"call {self.number}"


def past_call(call: ToolCall, run: str = "") -> PastCall:
    """A call of this run that ended, as it is, without a mask."""
    return PastCall(
        id=0,
        run=run,
        number=call.number,
        time=call.time,
        server=entry_of(call.request.server),
        identity=call.identity,
        tool=call.request.tool,
        origin=call.request.origin,
        state=call.state,
        duration=call.elapsed,
        sent=call.sent_at is not None,
        error="" if call.error is None else str(call.error),
        argument_text=json_of(dict(call.arguments)),
    )


def recalled(past: PastCall, result: Mapping[str, Any] | None) -> ToolCall:
    """A call of an earlier run with its result, to be shown like one of this run. Its number is negative."""
    request = CallRequest(past.server, past.tool, past.arguments, past.origin, recalled=True)
    call = ToolCall(-past.id, request, lambda: 0.0)
    call.identity, call.time, call.state, call.ended_at = past.identity, past.time, past.state, past.duration
    call.sent_at = 0.0 if past.sent else None
    with suppress(InvalidResult):
        call.outcome = None if result is None else CallToolResult.read(result)
    if past.result_digest:
        size = size_text(past.result_size or 0)
        call.error = PastFailure(f"the result was too large to keep: {size}, SHA-256 {past.result_digest}")
    elif past.error:
        call.error = PastFailure(past.error)
    call.finished.set()
    return call


def kept_text(text: str, mask: Mask) -> str:
    """A text as the history keeps it: without known secrets, and not too long."""
    cut = mask(text)[:FIELD_CHARACTERS]  # in this order: the mask does not know a part of a secret
    return cut.encode("utf-8", "backslashreplace").decode()


def json_of(value: Any) -> str | None:
    """A value as JSON that is valid Unicode; None if it cannot be written."""
    with suppress(ValueError, TypeError, RecursionError):
        text = json.dumps(value, ensure_ascii=False)
        return text if _is_unicode(text) else json.dumps(value)
    return None


def _is_unicode(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.isascii() or text.encode())
    return False


def moment_text(moment: float) -> str:
    """Such as ``26 Nov 14:02``: local date and time, in twelve cells."""
    with suppress(ValueError, OverflowError, OSError):
        return f"{datetime.fromtimestamp(moment):%d %b %H:%M}"
    return "-"


@dataclass(frozen=True, slots=True)
class PastCallQuery:
    """The calls to find, newest first."""

    server: str | None = None
    tool: str | None = None
    identity: str | None = None
    words: Sequence[str] = ()
    """Texts that occur in the tool, the server, the number, the state or the start of the arguments, in lower case."""
    before: int | None = None
    """Only calls whose ``id`` is less."""
    without_run: str = ""
    """The run whose calls are left out."""
    most: int = PAGE


def search_text_of(tool: str, server: str, number: int, state: CallState, arguments: str) -> str:
    """The text in which `PastCallQuery.words` are sought."""
    return "\n".join((tool, server, str(number), state.value, arguments)).lower()


def without_masked(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The arguments without those that hold a mask, and the paths of what was left out.

    Members of objects are left out one by one; a list that holds a mask is left out as a whole.
    """
    left_out: list[str] = []
    kept = _unmasked_members(arguments, "", left_out)
    return kept, left_out


def masked_paths(arguments: Mapping[str, Any]) -> list[str]:
    """The paths of the values that hold a mask."""
    return without_masked(arguments)[1]


def _unmasked_members(members: Mapping[str, Any], path: str, left_out: list[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in members.items():
        place = f"{path}.{name}" if path else name
        if MASK not in name and isinstance(value, dict):
            kept[name] = _unmasked_members(value, place, left_out)
        elif any(MASK in text for text in (name, *_texts(value))):
            left_out.append(place)
        else:
            kept[name] = value
    return kept


def _texts(value: Any) -> Iterator[str]:
    """All strings and names in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield name
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
