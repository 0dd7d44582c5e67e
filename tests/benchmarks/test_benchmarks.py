from __future__ import annotations

import json

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.table import text_of

# Nine rows of stdio and the host, seven longest holds, the capture, five of HTTP, seven of the era without a handshake,
# the idle servers, eleven pairs of p50 and p95, the growth.
ROWS = 52


def test_every_work_runs_at_tiny_sizes_and_prints_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tiny", "--runs", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["note"] for row in rows if row["note"].startswith("not measured")] == []
    assert [row["work"][:2] for row in rows[:7]] == [f"{number} " for number in range(1, 8)]
    assert len(rows) == ROWS
    assert all(row["ours"] for row in rows)


def test_a_ratio_is_the_median_of_the_pairs_and_a_work_that_failed_is_within_nothing() -> None:
    ours, theirs = (Sample(0.002), Sample(0.09), Sample(0.003)), (Sample(0.001), Sample(0.03), Sample(0.002))
    row = Row("calls", ours, theirs, bound=1.9)
    assert (row.ratio, row.within, row.cpu_ratio) == (2.0, False, None)
    failed = Row("frame", bound=1.35, note="not measured: it is not there")
    table = text_of([row, failed]).splitlines()
    assert table[2].split() == ["calls", "3.00", "ms", "2.00", "ms", "2.00", "1.50–3.00", "1.90", "NO"]
    assert table[-1].strip() == "not measured: it is not there"
