"""Copies through a tmux around this program; limits the size of a copy, as terminals do not report what they took."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

MOST_BYTES: Final = 74_994
"""Limit of one copy in bytes: 100,000 in base64, the most that hterm takes. Others silently take more or less."""

TMUX_SECONDS: Final = 2.0
"""Time limit for tmux, which answers within milliseconds."""

NOT_PASSED_ON: Final = "tmux did not take the copy. `tmux set -s set-clipboard on` lets programs copy."


def load_into_tmux(data: bytes) -> bool:
    """Load ``data`` into a buffer of the tmux around this program, and into its terminal's clipboard; False if it did
    not.

    By default (``set-clipboard external``) tmux ignores copies in a program's output, but not its own command.
    """
    command = [shutil.which("tmux") or "tmux", "load-buffer", "-w", "-"]
    nowhere = subprocess.DEVNULL
    try:
        return not subprocess.run(
            command, input=data, stdout=nowhere, stderr=nowhere, timeout=TMUX_SECONDS, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
