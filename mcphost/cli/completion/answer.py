"""Answers a shell: the words that fit at the cursor, one a line, each with a tab and a description if it has one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from mcphost.cli.completion.candidates import candidates
from mcphost.cli.completion.known_names import KnownNames
from mcphost.errors import McphostError
from mcphost.places import working_folder


def answer_shell(words: Sequence[str]) -> int:
    """Print the candidates; nothing where names of files fit."""
    found: Iterable[tuple[str, str]] = ()
    with suppress(McphostError):  # without a home or a working folder nothing is known
        found = list(candidates(words, KnownNames(os.environ, working_folder())))
    print("".join(f"{word}\t{about}\n" if about else f"{word}\n" for word, about in found), end="")
    return 0
