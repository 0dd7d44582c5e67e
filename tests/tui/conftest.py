"""The option that updates the stored snapshots."""

from __future__ import annotations

import pytest

import tests.tui.settling  # noqa: F401  (every pilot of these tests waits as it says)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="store what the screens show now")
