"""Installs all that the tests fetch from npm and PyPI, so that no test waits for it: `python -m tests.fetched`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.imports.made_fixtures import SMALL, host_modules
from tests.npm import programs
from tests.pypi import environment, sources
from tests.whole.enterprise import AUTHLIB
from tests.whole.peers import SDKS


def installations() -> Iterator[Callable[[], object]]:
    yield programs
    for version, (name, packages, _) in SDKS.items():
        yield partial(environment, name, packages)
        yield partial(sources, "mcp", version)
    yield partial(environment, *AUTHLIB)
    yield from (partial(host_modules, program) for program in SMALL)


if __name__ == "__main__":
    for install in installations():
        try:
            install()
        except (pytest.skip.Exception, pytest.fail.Exception) as problem:  # its tests say so again
            print(problem)
