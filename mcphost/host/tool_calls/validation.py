"""Checks values by schemas from outside without ever holding up the event loop.

A check that is sure to be short is done on the spot; any other runs in a child process that is killed when its time is
over. It knows nothing of tools and answers: who asks decides what "not validated" means.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.schema.traversal import nodes
from mcphost.protocol.schema.validation import SchemaProblem, SchemaRefused, load_validator, problems_if_cheap

LIMIT_SECONDS = 0.25
START_SECONDS = 10.0
"""For a child to come up on a loaded machine; it needs about 0.1 s."""

MAX_NODES = 100_000
"""Parts of a value, a part being 100 characters of text too: writing more for the child would itself take long."""

CHILDREN = 2
"""Checks at once; more wait, and their time starts when they do."""

_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The result of a validation. ``note`` is ``not validated: why`` if it failed; ``problems`` is then empty."""

    problems: tuple[SchemaProblem, ...] = ()
    note: str | None = None

    @property
    def valid(self) -> bool:
        """The value was checked, and fits."""
        return not self.problems and self.note is None


async def prepare() -> None:
    """Load the library that checks, beside other work; the first check would do it otherwise."""
    await asyncio.to_thread(load_validator)


async def validate(schema: Any, instance: Any, *, limit_seconds: float = LIMIT_SECONDS) -> ValidationResult:
    """Check ``instance`` by ``schema``; raises nothing that the two could cause.

    ``limit_seconds`` bounds the check itself; a child's start-up comes on top.
    """
    try:
        return validate_at_once(schema, instance) or await _in_child(_written(schema, instance), limit_seconds)
    except SchemaRefused as refused:
        return ValidationResult(note=f"not validated: {refused}")
    except OSError as error:
        return ValidationResult(note=f"not validated: the checking process could not be started ({error.strerror})")


def validate_at_once(schema: Any, instance: Any) -> ValidationResult | None:
    """Check ``instance`` as `validate` does if that is sure to be short; None: it may not be."""
    try:
        found = problems_if_cheap(schema, instance)
    except SchemaRefused as refused:
        return ValidationResult(note=f"not validated: {refused}")
    return None if found is None else ValidationResult(tuple(found))


def _written(schema: Any, instance: Any) -> bytes:
    if nodes(instance, MAX_NODES) > MAX_NODES:
        raise SchemaRefused("the value is too large to check")
    try:
        return json.dumps({"schema": schema, "instance": instance}).encode()
    except (ValueError, RecursionError):
        raise SchemaRefused("the value is too deep, or holds a number that is too long") from None


async def _in_child(request: bytes, limit_seconds: float) -> ValidationResult:
    async with _slot(), _child() as child:
        try:
            async with asyncio.timeout(START_SECONDS):
                await _ready(child)
            async with asyncio.timeout(limit_seconds):
                answer, _ = await child.communicate(request)
        except TimeoutError:
            raise SchemaRefused(f"the check took longer than {limit_seconds:g} s") from None
    return _read(answer)


async def _ready(child: Process) -> None:
    assert child.stdout is not None
    if not (await child.stdout.readline()).startswith(b"ready"):
        raise SchemaRefused("the checking process did not start")


def _read(answer: bytes) -> ValidationResult:
    try:
        found = json.loads(answer)
    except ValueError:
        raise SchemaRefused("the check needs too much memory") from None
    if "refused" in found:
        raise SchemaRefused(found["refused"])
    return ValidationResult(tuple(SchemaProblem(path, message) for path, message in found["problems"]))


def _slot() -> asyncio.Semaphore:
    return _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(CHILDREN))


@asynccontextmanager
async def _child() -> AsyncIterator[Process]:
    """A worker in a session of its own, without the user's environment; gone, whatever happened, at the end.

    ``-P`` keeps the working directory, which may be anybody's project, off the import path.
    """
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    command = (sys.executable, "-P", "-m", "mcphost.host.tool_calls.validation_worker")
    child = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
    )
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.communicate()
