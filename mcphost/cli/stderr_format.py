"""Chooses between text and JSON on stderr. ``--json`` decides before a command is even parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_AS_JSON: Final[ContextVar[bool]] = ContextVar("stderr as JSON", default=False)


def stderr_is_json() -> bool:
    return _AS_JSON.get()


@contextmanager
def stderr_format_of(argv: Sequence[str]) -> Iterator[None]:
    """Write to stderr as the words of this command line demand, until the end of the block."""
    options = argv[: argv.index("--")] if "--" in argv else argv
    token = _AS_JSON.set("--json" in options)
    try:
        yield
    finally:
        _AS_JSON.reset(token)
