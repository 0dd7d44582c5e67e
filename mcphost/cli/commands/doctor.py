"""``mcphost doctor``: finds what keeps mcphost from working, and names the commands that fix it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Final

from mcphost.cli.doctor.diagnosis import diagnose
from mcphost.cli.doctor.findings import as_text
from mcphost.cli.margin import size
from mcphost.cli.output import Outcome, is_terminal, json_text, with_coloured_states
from mcphost.cli.run import finish

PROBLEM: Final = 1
"""Exit code if anything does not work."""


def run_doctor(options: Namespace) -> int:
    """Print a line for each finding."""
    diagnosis = diagnose(options, os.environ)
    if options.json:
        text = "".join(json_text(each.as_object()) for each in diagnosis.findings)
    else:
        columns = [size(sys.stdout)[0]] if is_terminal(sys.stdout) else []
        text = with_coloured_states(as_text(diagnosis.findings, *columns))
    return finish(Outcome(text, PROBLEM if diagnosis.has_problem else 0))
