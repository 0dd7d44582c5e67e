"""The reserved metadata of modern messages (``_meta``) in words."""

from __future__ import annotations

import json

from mcphost.protocol.lifecycle.session import META_PREFIX


def metadata_words(text: str) -> str:
    """The reserved metadata of a modern message in words; empty without any."""
    if META_PREFIX not in text:
        return ""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    holder = message.get("params") or message.get("result") if isinstance(message, dict) else None
    meta = holder.get("_meta") if isinstance(holder, dict) else None
    if not isinstance(meta, dict):
        return ""
    names = (name for name in meta if name.startswith(META_PREFIX))
    return " · ".join(f"{name.removeprefix(META_PREFIX)} {_short(meta[name])}" for name in names)


def _short(value: object) -> str:
    """An implementation by name and version, an object by its members, and any other single value as it is."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return f"{value['name']} {_short(value.get('version', ''))}".strip()
    if isinstance(value, dict):
        return ", ".join(value) or "none"
    return "…" if isinstance(value, list) else str(value)
