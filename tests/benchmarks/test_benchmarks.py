from __future__ import annotations

import json

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.table import text_of
from tests.benchmarks.works import WORKS

SEVERAL = {"large": 4, "flood": 7, "typing": 6, "chat": 8, "hidden": 6, "palette": 4} | dict.fromkeys(
    (
        "web",
        "web-parallel",
        "official",
        "filter",
        "sorting",
        "history",
        "between",
        "tap-start",
        "taps",
        "served",
        "shared",
    ),
    2,
)
"""The number of rows of each work that has more than one."""

NUMBERED = {"sequential": 1, "parallel": 2, "logs": 3, "big": 4, "frame": 5, "call": 6, "servers": 7}


@pytest.mark.parametrize("work", WORKS)
def test_a_work_runs_at_tiny_sizes_and_prints_its_rows(work: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--only", work, "--tiny", "--runs", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["note"] for row in rows if row["note"].startswith("not measured")] == []
    assert len(rows) == SEVERAL.get(work, 1)
    assert all(row["ours"] for row in rows)
    if work in NUMBERED:
        assert rows[0]["work"].startswith(f"{NUMBERED[work]} ")


def test_a_ratio_is_the_median_and_a_failed_work_breaks_its_bound() -> None:
    ours, theirs = (Sample(0.002), Sample(0.09), Sample(0.003)), (Sample(0.001), Sample(0.03), Sample(0.002))
    row = Row("calls", ours, theirs, bound=1.9)
    assert (row.ratio, row.within, row.cpu_ratio) == (2.0, False, None)
    failed = Row("frame", bound=1.35, note="not measured: it is not there")
    table = text_of([row, failed]).splitlines()
    assert table[2].split() == ["calls", "3.00", "ms", "2.00", "ms", "2.00", "1.50–3.00", "1.90", "NO"]
    assert table[-1].strip() == "not measured: it is not there"
