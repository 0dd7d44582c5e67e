"""The methods and members of each revision, so that a client gets the shapes of its own."""

from __future__ import annotations

from mcphost.demo.tool import Json

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions with the initialize handshake."""

NEWEST = REVISIONS[-1]
MODERN = "2026-07-28"
"""The revision without it."""

BATCHES = "2025-03-26"
"""The one revision in which a line may hold an array of messages."""

TASKS = "2025-11-25"
"""The revision in which a call may be answered later."""

REMOVED = {
    "capabilities": ("tasks",),
    "tool": ("execution",),
    "method": (
        "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/get",
        "tasks/list", "tasks/cancel", "tasks/result",
    ),
}  # fmt: skip
"""Removed in the revision without a handshake."""

CAPABILITIES: Json = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}

SINCE: dict[str, dict[str, str]] = {
    "tool": {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18", "execution": TASKS},
    "capabilities": {"completions": "2025-03-26", "tasks": TASKS},
    "method": {
        **dict.fromkeys(("server/discover", "subscriptions/listen"), MODERN),
        **dict.fromkeys(("tasks/get", "tasks/list", "tasks/cancel", "tasks/result"), TASKS),
    },
    "resource": {"title": "2025-06-18"},
    "prompt": {"title": "2025-06-18"},
    "identity": {"title": "2025-06-18", "description": "2025-11-25"},
    "result": {"structuredContent": "2025-06-18"},
    "notifications/progress": {"message": "2025-03-26"},
}
CONTENT_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}


def agreed(asked: object) -> str:
    """The revision to answer ``initialize`` with."""
    return asked if isinstance(asked, str) and asked in REVISIONS else NEWEST


def has(what: str, name: str, revision: str) -> bool:
    """True if the revision has this method, or this member of ``what``."""
    if revision == MODERN and name in REMOVED.get(what, ()):
        return False
    return SINCE.get(what, {}).get(name, "") <= revision


def trimmed(what: str, members: Json, revision: str) -> Json:
    """The members of a tool, an identity, a result or a notification's params that the revision knows."""
    return {name: value for name, value in members.items() if has(what, name, revision)}


def trimmed_result(result: Json, revision: str) -> Json:
    """A tool's result for that revision; content it cannot carry becomes a sentence about it."""
    content = [_carried(block, revision) for block in result["content"]]
    return trimmed("result", result, revision) | {"content": content}


def _carried(block: Json, revision: str) -> Json:
    kind = block["type"]
    if CONTENT_SINCE.get(kind, "") <= revision:
        return block
    what = block.get("uri") or block.get("mimeType")
    return {"type": "text", "text": f"({kind}, {what}: revision {revision} cannot carry it)"}
