"""Searches every file that a whole run of the tests left for secrets that can be recognized.

Those are the tokens and codes of the authorization server in `tests/servers/guarded.py`, signed tokens,
and values that tests call canaries. Files that mcphost did not write may hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SECRETS = re.compile(
    rb"(?:access|refresh|code)-[0-9a-f]{24}"
    rb"|canary-[a-z]+-[0-9]{8}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}"
)
OTHERS = {"key": "what a configuration refers to", "shelf": "a stand-in for a keychain", "checks.json": "a referee's"}


def secrets_in(folder: Path) -> list[str]:
    """Which secrets stand in files below ``folder``, and in which."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [
        f"{found.decode()} in {path}"
        for path in files
        if path.name not in OTHERS
        for found in SECRETS.findall(path.read_bytes())
    ]


@pytest.fixture(scope="session", autouse=True)
def no_secret_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The end of a run fails where any file that is left holds a secret."""
    yield
    assert secrets_in(tmp_path_factory.getbasetemp()) == []
