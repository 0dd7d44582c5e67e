"""The members of each revision, so that a client gets the shapes of its own."""

from __future__ import annotations

from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.serving.served_request import Json

REMOVED = {"tool": ("execution",), "identity": ("description",)}
"""Removed in the revisions without a handshake: the identity is in each of their results, and short there."""

SINCE: dict[str, dict[str, str]] = {
    "tool": {
        "annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18", "execution": "2025-11-25",
    },
    "resource": {"title": "2025-06-18"},
    "prompt": {"title": "2025-06-18"},
    "identity": {"title": "2025-06-18", "description": "2025-11-25"},
    "result": {"structuredContent": "2025-06-18"},
    "progress": {"message": "2025-03-26"},
}  # fmt: skip
CONTENT_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}


def trimmed(what: str, members: Json, revision: Revision) -> Json:
    """The members of a tool, an identity, a result or a progress report that the revision knows."""
    since, removed = SINCE[what], REMOVED.get(what, ()) if revision.modern else ()
    return {
        name: value
        for name, value in members.items()
        if since.get(name, "") <= revision.version and name not in removed
    }


def trimmed_result(result: Json, revision: Revision) -> Json:
    """A tool's result for that revision; content it cannot carry becomes a sentence about it."""
    content = [_carried(block, revision.version) for block in result["content"]]
    return trimmed("result", result, revision) | {"content": content}


def _carried(block: Json, version: str) -> Json:
    kind = block["type"]
    if CONTENT_SINCE.get(kind, "") <= version:
        return block
    what = block.get("uri") or block.get("mimeType")
    return {"type": "text", "text": f"({kind}, {what}: revision {version} cannot carry it)"}
