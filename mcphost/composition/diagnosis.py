"""Answers questions of ``mcphost doctor`` about parts that no command imports."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcphost.composition.lookup import resolve_in_thread
from mcphost.composition.secret_items import keychain_is_used
from mcphost.composition.sign_in import assertion_reader, settings_of
from mcphost.config import KEYRING_SERVICE, Config, Values
from mcphost.lazy_dataclass import dataclass
from mcphost.transports.stdio.pid_files import Leftover, PidFiles

if TYPE_CHECKING:
    from mcphost.auth.ports import WorkloadIdentity

PROBE: Final = "doctor"
"""The name of an item that is never stored: reading it shows whether the keychain answers."""


async def workload_identity(config: Config, values: Values, name: str) -> WorkloadIdentity:
    """The identity that the platform gives to sign in to the server ``name``; its source is asked, and nothing is sent.

    Raises ConfigError, SignInFailed.
    """
    from mcphost.auth.flow.workload import audience_of, identity_in  # late: few servers need it

    _, settings = await resolve_in_thread(config, values, name, settings_of)
    assert settings.assertion is not None
    audience = audience_of(settings, settings.token_endpoint) or settings.issuer
    jwt = await assertion_reader(values).read(settings.assertion, audience, name)
    return identity_in(jwt, settings, time.time())


@dataclass(frozen=True, slots=True)
class KeychainAnswer:
    """``failure`` says in a clause why the keychain cannot be used; empty: it answered after ``seconds``."""

    name: str
    seconds: float
    failure: str = ""
    missing: bool = False
    """True if this system has none at all."""


def ask_keychain(env: Mapping[str, str], seconds: float) -> KeychainAnswer | None:
    """Ask the keychain for an item that is not there, and wait at most so many seconds. None where it is switched off.

    Where the keychain prompts for a password, its prompt stays.
    """
    if not keychain_is_used(env):
        return None
    answers: list[KeychainAnswer] = []
    began = time.monotonic()
    thread = threading.Thread(target=lambda: answers.append(_asked(began)), name="ask the keychain", daemon=True)
    thread.start()
    thread.join(seconds)
    late = f"it does not answer within {seconds:g} s; it may be locked, or waiting for you"
    return answers[0] if answers else KeychainAnswer("", seconds, late)


def _asked(began: float) -> KeychainAnswer:
    from mcphost.auth.storage.keychain import (  # late: slow to import
        KeychainUnusable,
        NoKeychain,
        best_backend,
        given_secret,
    )

    try:
        name = str(best_backend().name).partition(" ")[0]
        given_secret(KEYRING_SERVICE, PROBE)
    except KeychainUnusable as error:
        return KeychainAnswer("", time.monotonic() - began, str(error), isinstance(error, NoKeychain))
    return KeychainAnswer(name, time.monotonic() - began)


def leftover_servers(state: Path) -> Sequence[Leftover]:
    """Servers that still run though the mcphost that started them was killed."""
    return PidFiles(state / "running").leftovers()
