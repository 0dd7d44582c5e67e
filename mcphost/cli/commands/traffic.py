"""``mcphost traffic``: a file of traffic in the form of another program."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Final

from mcphost.cli.output import Outcome, json_text
from mcphost.cli.report_formats import claim_report, write_report
from mcphost.cli.run import finish
from mcphost.errors import NotDone, UsageError
from mcphost.host.recordings.reading import read_recording
from mcphost.host.recordings.spans import otlp_of

STDOUT: Final = "-"


def run_traffic(options: Namespace) -> int:
    """Write the requests of a file as OpenTelemetry spans. Raises UsageError, ConfigError."""
    if options.otlp != STDOUT:
        claim_report(options.otlp)
    try:
        recording = read_recording(Path(options.file))
    except NotDone as error:  # nothing was connected that could be lost
        raise UsageError(str(error)) from None
    problems = tuple(f"{options.file}: {problem}" for problem in recording.problems)
    traces = otlp_of(recording)
    if options.otlp == STDOUT:
        return finish(Outcome(json_text(traces), remarks=problems))
    write_report(options.otlp, f"{json.dumps(traces, ensure_ascii=False)}\n")
    count = sum(len(scope["spans"]) for each in traces["resourceSpans"] for scope in each["scopeSpans"])
    return finish(Outcome(remarks=(*problems, f"{count:,} spans are in {options.otlp}")))
