"""What happens when the screen itself fails: which failures it outlives, and what is said of them.

Knows exceptions and message pumps. Refuses to know values: what a server sent may have broken a widget, and its text,
the exception's words and local variables may hold a secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.message import Message
from textual.message_pump import MessagePump

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
    """Goes on after a message whose handling failed; Textual's own parts never hear again after such a message."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:  # told, counted, and the next message may be a better one
            self.app._handle_exception(error)
