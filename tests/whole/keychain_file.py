"""mcphost with a keychain in a file, for machines on which no keychain daemon is installed.

    python -m tests.whole.keychain_file WORDS…

is `python -m mcphost WORDS…` with this one difference. The file and whether it is locked stand in the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import ClassVar, Final

from mcphost.auth.storage import keychain
from mcphost.cli import main
from tests.auth.keychains import FileShelf
from tests.auth.keychains import locked as refuse

ROOT = Path(__file__).parents[2]
NAME: Final = "TESTS_KEYCHAIN_FILE"


class KeychainFile(FileShelf):
    """Keeps its items in ``path``, in clear; locked while a file beside it says so."""

    PROGRAM: ClassVar[str] = "tests.whole.keychain_file"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._locked = path.with_suffix(".locked")
        self.before = lambda call: refuse(call) if self._locked.exists() else None

    @property
    def env(self) -> dict[str, str]:
        """Variables for a program that uses it."""
        return {NAME: str(self._path), "PYTHONPATH": str(ROOT)}

    def lock(self, locked: bool) -> None:
        self._locked.touch() if locked else self._locked.unlink(missing_ok=True)


if __name__ == "__main__":
    file = KeychainFile(Path(os.environ[NAME]))
    keychain.best_backend = lambda: file  # type: ignore[assignment,return-value]
    sys.exit(main())
