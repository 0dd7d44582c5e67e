"""Counts the servers that other programs on this machine have, for a start without any. Reads files, and no more."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from mcphost.config import home_folder, working_folder
from mcphost.imports.survey import survey

NAMED: Final = 3
"""Programs that are named; the servers of all others are counted together."""


def counts_here() -> list[tuple[str, int]]:
    """The programs that have servers, and how many, most first. Blocks on the disk."""
    counts = Counter[str]()
    for file in survey(os.environ, home_folder(), sys.platform, working_folder()):
        counts[file.host.label] += file.servers
    return [(label, count) for label, count in counts.most_common() if count]


def sentence(counts: Sequence[tuple[str, int]]) -> str:
    """``Claude Code has 4 servers, VS Code 2``; empty without any."""
    if not counts:
        return ""
    (label, count), *others = counts
    named = [f"{label} has {count} server{'s' if count != 1 else ''}"]
    named += [f"{other} {number}" for other, number in islice(others, NAMED - 1)]
    if rest := others[NAMED - 1 :]:
        named.append(f"{len(rest)} other{'s' if len(rest) > 1 else ''} {sum(number for _, number in rest)}")
    return ", ".join(named)
