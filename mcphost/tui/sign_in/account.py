"""Who is signed in at a server, for its card and its row: what there is, what is under way, what went wrong last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mcphost.dataclass import dataclass
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.host import Host
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.protocol.display import show
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.sign_in.end import standing_facts

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInStatus


@dataclass(frozen=True, slots=True)
class Account:
    """``status`` is None until it was fetched; ``attempt`` is the latest sign-in of this run."""

    status: SignInStatus | None = None
    attempt: SignIn | None = None

    @property
    def running(self) -> SignIn | None:
        """The sign-in that has not ended."""
        return self.attempt if self.attempt is not None and not self.attempt.state.ended else None

    @property
    def signed_in(self) -> bool:
        """Is somebody, as far as is known?"""
        return self.status is not None and self.status.signed_in


class AccountBook:
    """The accounts at all servers of ``host``; ``statuses`` as they were fetched last."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.statuses: dict[str, SignInStatus] = {}

    def of(self, server: str) -> Account:
        """Return what is known of the sign-in of a server."""
        attempts = [each for each in self._host.sign_ins.all.values() if each.server == server]
        return Account(self.statuses.get(server), attempts[-1] if attempts else None)


NOBODY: Final = Account()


def key_of(connection: Connection, account: Account) -> str:
    """What s does for this server: ``sign_in``, ``sign_out``, or nothing."""
    if not connection.config.signs_in:
        return ""
    needed = connection.state is ServerState.NEEDS_SIGN_IN or account.running is not None
    return "sign_in" if needed or not account.signed_in else "sign_out"


def account_facts(connection: Connection, account: Account) -> Iterator[Fact]:
    """What the card says of it."""
    if not connection.config.signs_in:
        return
    if account.running is not None:
        yield fact("sign-in", f"◐ {account.running.state.value}: S shows it", "$text-warning")
    elif connection.state is ServerState.NEEDS_SIGN_IN:
        yield from _last_try(account.attempt)
        yield fact("go on", "press S to sign in", "bold $text-warning")
    if account.status is not None and account.signed_in:
        words = "yes, but it does not let this in" if connection.state is ServerState.NEEDS_SIGN_IN else "yes"
        yield fact("signed in", words)
        yield from standing_facts(account.status, time.time())
        if key_of(connection, account) == "sign_out":
            yield fact("", "S signs out · F forgets everything about this server", "$foreground-muted")


def _last_try(attempt: SignIn | None) -> Iterator[Fact]:
    if attempt is None:
        return
    if attempt.state is SignInState.FAILED and attempt.error is not None:
        yield fact("last try", show(str(attempt.error), limit=600), "$text-error")
    elif attempt.state is not SignInState.DONE:
        yield fact("last try", attempt.state.value)
