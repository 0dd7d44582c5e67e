"""``mcphost history``: the calls that were kept."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from mcphost.cli.output import Outcome, json_text, remark, table
from mcphost.cli.run import finish
from mcphost.cli.settings import find, settings_for_screen
from mcphost.config import state_folder
from mcphost.host.history.past_call import PastCall, PastCallQuery
from mcphost.host.history.store import HistoryStore
from mcphost.protocol.display import duration_text, show_line

HEADING: Final = ("TIME", "SERVER", "TOOL", "ARGUMENTS", "STATE", "DURATION")
ARGUMENT_CHARACTERS: Final = 400
"""Characters of the arguments in the table; --json has all of them."""


def run_history(options: Namespace) -> int:
    """Print the last calls. Raises ConfigError where the history cannot be read."""
    kept = settings_for_screen(find(options.config, os.environ), os.environ).loaded.config.ui.history
    store = HistoryStore(state_folder(os.environ) / "history.sqlite", remark)
    try:
        calls = list(_last(store, options.server, options.limit))
        if options.json:
            text = "".join(json_text(_object(call, store.result(call.id))) for call in calls)
        else:
            text = table([HEADING, *map(_row, calls)]) if calls else ""
    finally:
        store.close()
    return finish(Outcome(text, remarks=tuple(_remarks(options.server, kept=kept, found=bool(calls)))))


def _last(store: HistoryStore, server: str | None, most: int) -> Iterator[PastCall]:
    """The last calls, read page by page."""
    before: int | None = None
    while most and (found := store.find(PastCallQuery(server, before=before, most=most))):
        yield from found
        most, before = most - len(found), found[-1].id


def _remarks(server: str | None, *, kept: bool, found: bool) -> list[str]:
    none = f"no call to {show_line(server, 60)} is kept" if server else "no call is kept yet"
    return [*([] if found else [none]), *([] if kept else ["ui.history is false: calls are not kept now"])]


def _row(call: PastCall) -> tuple[str, ...]:
    arguments = "(not kept)" if call.argument_text is None else call.argument_text[:ARGUMENT_CHARACTERS]
    return (
        _time(call, "%Y-%m-%d %H:%M:%S"),
        call.server,
        call.tool,
        arguments,
        call.state.value,
        duration_text(call.duration),
    )


def _object(call: PastCall, result: str | None) -> dict[str, Any]:
    return {
        "id": call.id,
        "run": call.run,
        "call": call.number,
        "time": _time(call),
        "server": call.server,
        "sentTo": call.identity,
        "tool": call.tool,
        "askedBy": call.origin,
        "arguments": None if call.argument_text is None else call.arguments,
        "state": call.state.name.lower(),
        "sent": call.sent,
        "seconds": round(call.duration, 6),
        "error": call.error or None,
        "result": _parsed(result),
        "resultBytes": call.result_size,
        "resultSha256": call.result_digest or None,
    }


def _parsed(text: str | None) -> Any:
    with suppress(ValueError, RecursionError):
        return None if text is None else json.loads(text)
    return None


def _time(call: PastCall, form: str = "") -> str:
    """When it was asked for, in local time; in ISO 8601 without a ``form``."""
    with suppress(ValueError, OverflowError, OSError):
        when = datetime.fromtimestamp(call.time).astimezone()
        return when.strftime(form) if form else when.isoformat(timespec="milliseconds")
    return "-"
