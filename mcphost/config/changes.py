"""Compares two configurations, server by server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mcphost.config.models import Config
from mcphost.lazy_dataclass import dataclass

RISKY_FIELDS = frozenset(
    {
        "args",
        "bearer_token_env_var",
        "command",
        "cwd",
        "env",
        "env_http_headers",
        "env_vars",
        "http_headers",
        "oauth",
        "url",
    }
)
"""Fields that the user consents to with a server: the program or URL, and what it is given."""

_SECTIONS = ("models", "identity", "policy", "limits", "ui", "chat", "registry", "serve", "profiles")


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference. ``changed`` lists the changed fields by server, ``sections`` the other changed tables.

    ``needs_consent`` are the servers whose program, address or credentials changed; the reload dialog highlights them.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs_consent: frozenset[str] = frozenset()
    sections: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.sections)


def compare(old: Config, new: Config) -> Changes:
    """Return what differs in ``new``. A change of ``[limits]`` counts for each server that it applies to."""
    common = [name for name in new.servers if name in old.servers]
    changed = {name: fields for name in common if (fields := _fields(old, new, name))}
    return Changes(
        added=tuple(name for name in new.servers if name not in old.servers),
        removed=tuple(name for name in old.servers if name not in new.servers),
        changed=changed,
        needs_consent=frozenset(name for name, fields in changed.items() if RISKY_FIELDS.intersection(fields)),
        sections=tuple(name for name in _SECTIONS if getattr(old, name) != getattr(new, name)),
    )


def _fields(old: Config, new: Config, name: str) -> tuple[str, ...]:
    before, after = old.servers[name], new.servers[name]
    fields = [
        key for key in type(after).model_fields if key != "limits" and getattr(before, key) != getattr(after, key)
    ]
    if old.identity_of(name) != new.identity_of(name) and "oauth" not in fields:
        fields.append("oauth")
    if old.limits_for(name) != new.limits_for(name):
        fields.append("limits")
    return tuple(fields)
