"""``mcphost traffic export``: a recording as OpenTelemetry traces."""

from __future__ import annotations

import json
from pathlib import Path

from mcphost.host.recordings.recording import RecordedExchange, RecordedSession
from tests.cli.conftest import Mcphost
from tests.host.recordings.recorded_lines import written

PINGS = RecordedSession("git", exchanges=(RecordedExchange("ping", {}, 0.0, 0.1, result={}),) * 2)


def test_a_recording_is_exported_to_a_file_and_to_stdout(mcphost: Mcphost, tmp_path: Path) -> None:
    recording, traces = tmp_path / "git.mcp.jsonl", tmp_path / "traces.json"
    recording.write_bytes(written(PINGS))
    words = "traffic", "export", str(recording), "--otlp"
    for _ in range(2):  # a report replaces a report
        said = mcphost(*words, str(traces))
        assert (said.code, said.out) == (0, "")
        assert "2 spans are in" in said.err
    printed = mcphost(*words, "-")
    assert json.loads(printed.out) == json.loads(traces.read_text())


def test_an_export_replaces_no_other_file(mcphost: Mcphost, tmp_path: Path) -> None:
    recording = tmp_path / "git.mcp.jsonl"
    recording.write_bytes(written(PINGS))
    said = mcphost("traffic", "export", str(recording), "--otlp", str(recording))
    assert (said.code, recording.read_bytes()) == (2, written(PINGS))
    assert "is not replaced" in said.err
    assert mcphost("traffic", "export", str(tmp_path / "none"), "--otlp", "-").code == 2
