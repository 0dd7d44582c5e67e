"""`python -m tests.benchmarks`: measures mcphost against what one would write without it, and prints the table.

Nothing here is a test: no figure fails a build. A bound is what the ratio should stay under on a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from tests.benchmarks.measure import Row
from tests.benchmarks.sizes import TINY, Sizes
from tests.benchmarks.table import json_of, text_of
from tests.benchmarks.works import WORKS, carry_out


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and print it."""
    options = _options(arguments)
    sizes = TINY if options.tiny else Sizes()
    rows = asyncio.run(_rows(options.only or list(WORKS), sizes, options.runs))
    print(json_of(rows) if options.json else text_of(rows))


async def _rows(names: Sequence[str], sizes: Sizes, runs: int) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        print(f"{name} … (load {os.getloadavg()[0]:.1f})", file=sys.stderr)
        rows += await carry_out(name, sizes, runs)
    return rows


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", action="append", choices=list(WORKS), metavar="NAME", help=f"of {', '.join(WORKS)}")
    parser.add_argument(
        "--runs", type=int, default=7, metavar="N", help="pairs of runs after the warm-up (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="every sample, as JSON")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to see that everything runs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
