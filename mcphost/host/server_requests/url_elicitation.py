"""A URL that a server asked to visit: opened in a browser with the user's consent, never fetched by mcphost.

Specification: client/elicitation, URL mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from mcphost.host.desktop import Open

if TYPE_CHECKING:
    from mcphost.protocol.models.elicitation import PageAddress, UrlElicitationRequest


class UrlElicitationState(Enum):
    WAITING = "opened; the server has not said that it is done"
    COMPLETED = "done, says the server"
    CONTINUED = "done, you say"
    GIVEN_UP = "given up"
    LEFT = "the session ended before the server said that it is done"

    @property
    def ended(self) -> bool:
        """True if nothing more is awaited."""
        return self is not UrlElicitationState.WAITING


class UrlElicitation:
    """One page. Consent to open it says nothing of what was done there."""

    def __init__(
        self,
        number: int,
        server: str,
        wanted: UrlElicitationRequest,
        call: int | None,
        open_url: Open,
        changed: Callable[[UrlElicitation], None],
        until: float | None = None,
        *,
        attended: bool = True,
    ) -> None:
        self.number, self.server, self.call = number, server, call
        self.message = wanted.message
        """Why, in the server's words."""
        self.address: PageAddress = wanted.address
        self.elicitation = wanted.elicitation
        """The server's id for it; opaque."""
        self.until = until
        """Monotonic time in seconds at which a call that needs it gives up; None: no call waits for it."""
        self.attended = attended
        """True if a person agreed to it; a rule that agrees opens no browser."""
        self.state = UrlElicitationState.WAITING
        self.not_opened = ""
        """Why no browser opened; the user then copies the address."""
        self._open_url, self._changed = open_url, changed
        self._ended = asyncio.Event()

    async def begin(self) -> None:
        """Announce it, opened in a browser if a person agreed."""
        if self.attended:
            await self.open()
        else:
            self._changed(self)

    async def open(self) -> None:
        """Have a browser open it, the first time or again."""
        self.not_opened = await self._open_url(self.address.opens)
        self._changed(self)

    def go_on(self) -> None:
        """The user says that it is done: what waited for it goes on."""
        self.enter(UrlElicitationState.CONTINUED)

    def give_up(self) -> None:
        """The user will not go on with it."""
        self.enter(UrlElicitationState.GIVEN_UP)

    def enter(self, state: UrlElicitationState) -> None:
        """Enter a final state; a page that has ended stays as it is."""
        if not self.state.ended:
            self.state = state
            self._ended.set()
            self._changed(self)

    async def ended(self) -> bool:
        """Wait for its end: is it done with, by the word of the server or of the user?"""
        await self._ended.wait()
        return self.state in (UrlElicitationState.COMPLETED, UrlElicitationState.CONTINUED)
