"""Writes down what was decided, what was asked for, and what became of it.

Knows when a record is kept and when one must be. Refuses to know what is done with it, and what it means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from mcphost.config import Config
from mcphost.errors import Declined
from mcphost.host.audit import AuditLog

DISK_SECONDS: Final = 2.0
"""How long a call waits for its record where the policy does not require one."""


class AuditWriter:
    """``alarm`` takes a sentence the user must see."""

    def __init__(self, config: Callable[[], Config], audit: AuditLog, alarm: Callable[[str], None]) -> None:
        self._config, self._audit, self._alarm = config, audit, alarm
        self._alarmed = False

    async def before(self, record: Mapping[str, Any]) -> None:
        """Write down what is about to be sent, and wait until the system has the record: then no crash loses it.

        Raises Declined where the policy wants a record that cannot be kept. Where it does not, a disk that does not
        answer is waited for `DISK_SECONDS`.
        """
        written, required = self.note(record), self._config().policy.audit == "required"
        if required and self._audit.path is None:
            raise _not_kept("policy.audit is 'required', and no audit log is kept here")
        if written is None:
            return
        if not written.done():
            await asyncio.wait([written], timeout=None if required else DISK_SECONDS)
        if required and (error := written.exception()):
            raise _not_kept(f"the audit log cannot be written: {error}")

    def note(self, record: Mapping[str, Any]) -> asyncio.Future[None] | None:
        """Write down what happened; None where the policy wants no records."""
        if self._config().policy.audit == "off":
            return None
        time = datetime.now().astimezone().isoformat(timespec="milliseconds")
        written = self._audit.record({"time": time, **record})
        if written.done():
            self._watch(written)
        else:
            written.add_done_callback(self._watch)
        return written

    def _watch(self, written: asyncio.Future[None]) -> None:
        """Say once that the log cannot be written; again only after it could."""
        failure = written.exception()
        if failure is not None and not self._alarmed:
            self._alarm(f"the audit log cannot be written: {failure}")
        self._alarmed = failure is not None


def _not_kept(why: str) -> Declined:
    return Declined(why, by="policy", rule="audit", reason=why)
