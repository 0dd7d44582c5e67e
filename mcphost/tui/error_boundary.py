"""What happens when the screen itself fails: which failures it outlives, and what is said of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump

from mcphost.dataclass import dataclass

if TYPE_CHECKING:
    _Pump = MessagePump
else:
    _Pump = object

CRASHES: Final = 20
"""Failures of the screen after which it is no use going on."""

OWN: Final = os.path.dirname(os.path.dirname(__file__))


@dataclass(slots=True)
class FailureCount:
    """Counts failures. ``bearable`` says whether to go on after one more."""

    limit: int = CRASHES
    count: int = 0

    def bearable(self) -> bool:
        """One more; go on?"""
        self.count += 1
        return self.count <= self.limit


def sentence(error: BaseException, reference: int) -> str:
    """What is said to the user: kind and place, and a number to find it by in the logs."""
    return f"mcphost could not show something ({type(error).__name__} at {place(error)}, reference {reference})."


def place(error: BaseException) -> str:
    """The innermost line of ours that the error passed."""
    found, step = "an unknown place", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(OWN):
            found = f"mcphost{file.removeprefix(OWN)}:{step.tb_lineno}"
        step = step.tb_next
    return found


class ErrorBoundary(_Pump):
    """A screen that goes on after a message whose handling failed; a message pump of Textual's ends after one."""

    async def _dispatch_message(self, message: Message) -> None:
        with failures_reported_to(self.app):
            await super()._dispatch_message(message)


@contextmanager
def failures_reported_to(app: App[Any]) -> Iterator[None]:
    """Let ``app`` report an exception and count it; the next message may be a better one."""
    try:
        yield
    except Exception as error:
        app._handle_exception(error)
