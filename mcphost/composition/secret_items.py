"""The keychain items that ``${keyring:NAME}`` reads, for whoever writes and deletes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from mcphost.config import KEYRING_SERVICE
from mcphost.errors import ConfigError

if TYPE_CHECKING:
    from mcphost.auth.storage.keychain import Keychain

NO_KEYCHAIN: Final = "off"
"""The value of MCPHOST_KEYCHAIN with which no keychain is asked for anything: tokens are kept in memory only."""

_T = TypeVar("_T")


class SecretItems:
    """Reads, writes and deletes secrets; each method raises ConfigError where the keychain cannot be used."""

    async def read(self, name: str) -> str | None:
        """The item's secret; None where there is no such item."""
        return await self._call(lambda keychain: keychain.read(name))

    async def write(self, name: str, secret: str) -> None:
        await self._call(lambda keychain: keychain.write(name, secret))

    async def delete(self, name: str) -> None:
        await self._call(lambda keychain: keychain.delete(name))

    @cached_property
    def _keychain(self) -> Keychain:
        from mcphost.auth.storage.keychain import Keychain

        return Keychain(KEYRING_SERVICE)

    async def _call(self, question: Callable[[Keychain], Awaitable[_T]]) -> _T:
        from mcphost.auth.storage.keychain import KeychainUnusable

        try:
            return await question(self._keychain)
        except KeychainUnusable as error:
            raise ConfigError(f"the keychain cannot be used: {error}") from None


def secret_items(env: Mapping[str, str]) -> SecretItems | None:
    """The keychain; None where the environment says that none may be used."""
    return SecretItems() if keychain_is_used(env) else None


def keychain_is_used(env: Mapping[str, str]) -> bool:
    return env.get("MCPHOST_KEYCHAIN", "").strip().lower() != NO_KEYCHAIN
