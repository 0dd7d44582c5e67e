"""Answers a shell: the words that fit at the cursor, one a line, each with a tab and a description if it has one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mcphost.cli.completion.candidates import candidates
from mcphost.cli.completion.known_names import KnownNames


def answer_shell(words: Sequence[str]) -> int:
    """Print the candidates; nothing where names of files fit."""
    found = candidates(words, KnownNames(os.environ, Path.cwd()))
    print("".join(f"{word}\t{about}\n" if about else f"{word}\n" for word, about in found), end="")
    return 0
