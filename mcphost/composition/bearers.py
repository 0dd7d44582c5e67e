"""The tokens with which agents come to mcphost's address: the keychain has them, a state file their digests."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from mcphost.composition.secret_items import SecretItems
from mcphost.config.fields import server_name
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.json_values import as_dict, as_text

BEARERS: Final = "bearers"
"""The name of the state file, and of its table: by agent, the SHA-256 (hex) of its token."""

TOKEN_BYTES: Final = 32


class Bearers:
    """The agents that have a token. All methods raise ConfigError for a file that cannot be read."""

    def __init__(self, store: StateStore) -> None:
        self.store = store
        self._digests: Mapping[str, str] = {}
        self._version: object = None

    def agents(self) -> frozenset[str]:
        self._refresh()
        return frozenset(self._digests)

    def agent_of(self, token: str) -> str | None:
        """The agent that has this token; None for any other text."""
        self._refresh()
        digest, found = _digest(token), None
        for agent, known in self._digests.items():  # all of them, so that the time says nothing
            found = agent if compare_digest(known, digest) else found
        return found

    def _refresh(self) -> None:
        # On the event loop: the file has a line for each agent, and is read only after it was written.
        version = self.store.version(BEARERS)
        if version != self._version:
            self._digests, self._version = _digests_in(self.store.read(BEARERS)), version


class BearerTokens:
    """Makes tokens, one for each agent. All methods raise ConfigError where keychain or file cannot be used."""

    def __init__(self, store: StateStore, items: SecretItems) -> None:
        self._store, self._items = store, items

    async def token(self, agent: str) -> str:
        """The agent's token, which is made if it has none."""
        try:
            server_name(agent)
        except ValueError as error:
            raise ConfigError(f"{agent!a} cannot be an agent's name here: {error}") from None
        token = await self._items.read(_item(agent))
        if token is None:
            token = secrets.token_urlsafe(TOKEN_BYTES)
            await self._items.write(_item(agent), token)
        digest = _digest(token)
        await asyncio.to_thread(self._store.update, BEARERS, lambda data: _with(data, agent, digest))
        return token

    async def revoke(self, agent: str) -> bool:
        """Refuse the agent's token from now on, and delete it; False if it has none."""
        known = await asyncio.to_thread(lambda: agent in _digests_in(self._store.read(BEARERS)))
        await asyncio.to_thread(self._store.update, BEARERS, lambda data: _with(data, agent, None))
        stored = await self._items.read(_item(agent)) is not None
        if stored:
            await self._items.delete(_item(agent))
        return known or stored

    async def check(self) -> None:
        """Find out whether the keychain can be used."""
        await self._items.read(_item(""))


def _item(agent: str) -> str:
    return f"serve.{agent}"


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _digests_in(data: Mapping[str, Any]) -> dict[str, str]:
    return {agent: as_text(digest) for agent, digest in as_dict(data.get(BEARERS)).items() if as_text(digest)}


def _with(data: Mapping[str, Any], agent: str, digest: str | None) -> dict[str, Any]:
    others = {name: each for name, each in _digests_in(data).items() if name != agent}
    return {BEARERS: others if digest is None else {**others, agent: digest}}
