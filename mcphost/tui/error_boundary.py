"""Keeps the app running after an exception of the screen, and says what happened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump

from mcphost.lazy_dataclass import dataclass

if TYPE_CHECKING:
    _Pump = MessagePump
else:
    _Pump = object

CRASHES: Final = 20
"""Exceptions after which the app gives up."""

OWN: Final = os.path.dirname(os.path.dirname(__file__))


@dataclass(slots=True)
class FailureCounter:
    limit: int = CRASHES
    count: int = 0

    def within_limit(self) -> bool:
        """Count one more; return whether to continue."""
        self.count += 1
        return self.count <= self.limit


def sentence(error: BaseException, traceback: Path) -> str:
    """What the user is told: the type, the place, and the file with the traceback."""
    what = f"{type(error).__name__} at {place(error)}"
    return f"mcphost could not show something ({what}). The traceback, without values, is in {traceback}"


def place(error: BaseException) -> str:
    """The innermost line of mcphost in the traceback."""
    found, step = "an unknown place", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(OWN):
            found = f"mcphost{file.removeprefix(OWN)}:{step.tb_lineno}"
        step = step.tb_next
    return found


class ErrorBoundary(_Pump):
    """A screen that survives an exception in a message handler; Textual's message pumps end after one."""

    async def _dispatch_message(self, message: Message) -> None:
        with failures_reported_to(self.app):
            await super()._dispatch_message(message)


@contextmanager
def failures_reported_to(app: App[Any]) -> Iterator[None]:
    """Let ``app`` report an exception, and continue with the next message."""
    try:
        yield
    except Exception as error:
        app._handle_exception(error)
