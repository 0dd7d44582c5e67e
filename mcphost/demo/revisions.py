"""What each revision with the initialize handshake can carry, so that an old client is never sent a newer shape."""

from __future__ import annotations

from mcphost.demo.tool import Json

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST = REVISIONS[-1]
BATCHES = "2025-03-26"
"""The one revision in which a line may hold an array of messages."""

TASKS = "2025-11-25"
"""The revision in which a call may be answered later."""

SINCE: dict[str, dict[str, str]] = {
    "tool": {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18", "execution": TASKS},
    "capabilities": {"completions": "2025-03-26", "tasks": TASKS},
    "method": {"tasks/get": TASKS, "tasks/list": TASKS, "tasks/cancel": TASKS, "tasks/result": TASKS},
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
    """Does the revision know this method, or member of something?"""
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
