"""Pages of a list, with cursors of its server.

Specification: server/utilities/pagination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.serving.negotiation import InvalidParamsError


def page(name: str, items: Sequence[Any], params: Mapping[str, Any], size: int) -> dict[str, Any]:
    """The page that ``params`` ask for, as a result with the member ``name``. Raises InvalidParamsError."""
    starts = {f"from-{start}": start for start in range(size, len(items), size)}
    start = 0
    if "cursor" in params:
        cursor = params["cursor"]
        if not isinstance(cursor, str) or cursor not in starts:
            raise InvalidParamsError("This cursor is not valid, or not any more. List from the start.")
        start = starts[cursor]
    end = start + size
    found: dict[str, Any] = {name: items[start:end]}
    return found | ({"nextCursor": f"from-{end}"} if end < len(items) else {})
