"""The lock of ``[policy]``: which tools and skills are not what it says. It only narrows, and allows nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcphost.config import ComparedServer, Config, entry_of
from mcphost.protocol.models.base import digest_of
from mcphost.protocol.models.tools import Tool

if TYPE_CHECKING:
    from mcphost.config.surface_lock import LockedItem, LockedServer
    from mcphost.protocol.models.skills import Skill


def lock_name(config: Config) -> str:
    """The name of the lock's file."""
    return Path(config.policy.lock or "").name


def locked_entry(config: Config, server: str) -> LockedServer | None:
    """The server's entry in the lock; None without one, or without a lock."""
    lock = config.policy.locked
    return None if lock is None else lock.servers.get(_entry(config, server))


def unlocked_server(config: Config, server: str, identity: str) -> str:
    """Why none of a server's items is as in the lock, as a clause; empty if some may be, or without a lock."""
    if config.policy.locked is None:
        return ""
    locked = locked_entry(config, server)
    if locked is None:
        return f"{lock_name(config)} has no server {_entry(config, server)}"
    from mcphost.config.surface_lock import safe_identity  # late: few policies have a lock

    if identity and locked.identity and safe_identity(identity) != locked.identity:
        return f"{lock_name(config)} has another command or address for {_entry(config, server)}"
    return ""


def unlocked(config: Config, server: str, identity: str, tool: Tool) -> str:
    """Why a tool is not as in the lock, as a clause; empty if it is, or without a lock. No ``identity``: any counts."""
    locked = locked_entry(config, server)
    known = None if locked is None else (locked.tools or {}).get(tool.name)
    return _unlike(config, server, identity, "tool", known, lambda: tool.digest)


def unlocked_skill(config: Config, server: str, identity: str, skill: Skill) -> str:
    """As `unlocked`, for a skill: its frontmatter and the digests of its files. No file is read for it."""

    def digest() -> str:
        from mcphost.config.surface_lock import steady_skill  # late: few policies have a lock

        return digest_of(steady_skill(skill.definition()))

    locked = locked_entry(config, server)
    known = None if locked is None else (locked.skills or {}).get(skill.uri)
    return _unlike(config, server, identity, "skill", known, digest)


def _unlike(
    config: Config, server: str, identity: str, kind: str, known: LockedItem | None, digest: Callable[[], str]
) -> str:
    """Why an item is not as the lock knows it, as a clause."""
    if config.policy.locked is None:
        return ""
    if why := unlocked_server(config, server, identity):
        return why
    if known is None:
        return f"{lock_name(config)} does not have this {kind}"
    return "" if known.definition == digest() else f"this {kind} is not the one in {lock_name(config)}"


def _entry(config: Config, server: str) -> str:
    settings = config.servers.get(server)
    return (isinstance(settings, ComparedServer) and settings.entry) or entry_of(server)


class LockStatus(NamedTuple):
    """The comparison of a server's tools and skills with the lock."""

    lock: str
    """The name of its file."""
    differing: int
    """The number of tools that are not as in it, which no model and no agent is offered."""
    why: str
    """Why that is all of them; empty if it is not."""
    skills: int = 0
    """The number of skills that are not as in it, which are not loaded."""

    @property
    def as_locked(self) -> bool:
        return not (self.differing or self.why or self.skills)


def lock_status(
    config: Config, server: str, identity: str, tools: Iterable[Tool], skills: Iterable[Skill] = ()
) -> LockStatus | None:
    """Compare the tools and skills of a server with the lock; None without a lock."""
    if config.policy.locked is None:
        return None
    differing = sum(bool(unlocked(config, server, identity, tool)) for tool in tools)
    changed = sum(bool(unlocked_skill(config, server, identity, skill)) for skill in skills)
    return LockStatus(lock_name(config), differing, unlocked_server(config, server, identity), changed)
