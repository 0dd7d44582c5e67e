from __future__ import annotations

import pytest

from mcphost.host.connections import listings


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed lists are read again at once."""
    monkeypatch.setattr(listings, "RELIST_PAUSE", 0)
    monkeypatch.setattr(listings, "RELIST_DELAY", 0)
