"""Writes down what was decided, what was asked for, and what became of it.

Knows when a record is kept and when one must be. Refuses to know what is done with it, and what it means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from mcphost.config import Config
from mcphost.errors import Declined
from mcphost.host.audit import AuditLog


class Witness:
    """``alarm`` takes a sentence the user must see."""

    def __init__(self, config: Callable[[], Config], audit: AuditLog, alarm: Callable[[str], None]) -> None:
        self._config, self._audit, self._alarm = config, audit, alarm
        self._alarmed = False

    async def before(self, record: Mapping[str, Any]) -> None:
        """Write down what is about to be sent. Raises Declined where the policy wants a record that cannot be kept."""
        written = self.note(record)
        if written is None or self._config().policy.audit != "required":
            return
        if self._audit.path is None:
            raise _not_kept("policy.audit is 'required', and no audit log is kept here")
        try:
            await asyncio.shield(written)
        except OSError as error:
            raise _not_kept(f"the audit log cannot be written: {error}") from None

    def note(self, record: Mapping[str, Any]) -> asyncio.Future[None] | None:
        """Write down what happened; None where the policy wants no records."""
        if self._config().policy.audit == "off":
            return None
        time = datetime.now().astimezone().isoformat(timespec="milliseconds")
        written = self._audit.record({"time": time, **record})
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
