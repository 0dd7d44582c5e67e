"""Copies to a tmux around this program, and the size of one copy: terminals do not say what they took."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

MOST_BYTES: Final = 74_994
"""Bytes of one copy. They become 100,000 in base64, the most that hterm takes; others take more or less, unseen."""

TMUX_SECONDS: Final = 2.0
"""For tmux, which answers within milliseconds, to take a copy."""

NOT_PASSED_ON: Final = "tmux did not take the copy. `tmux set -s set-clipboard on` lets programs copy."


def load_into_tmux(data: bytes) -> bool:
    """Load ``data`` into a buffer of the tmux around this program, and into its terminal's clipboard; False if it did
    not.

    By default (``set-clipboard external``) tmux ignores what a program's output copies, but not its own command.
    """
    command = [shutil.which("tmux") or "tmux", "load-buffer", "-w", "-"]
    nowhere = subprocess.DEVNULL
    try:
        return not subprocess.run(
            command, input=data, stdout=nowhere, stderr=nowhere, timeout=TMUX_SECONDS, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
