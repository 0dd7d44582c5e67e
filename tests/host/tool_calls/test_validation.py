from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.tool_calls.validation import ValidationResult, validate
from mcphost.protocol.schema.validation import SchemaProblem

LADDER = {
    "$defs": {
        **{f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 10} for n in range(6)},
        "l6": {"type": "string"},
    },
    "$ref": "#/$defs/l0",
}
DOUBLING = {
    "$defs": {
        **{f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2, "unevaluatedProperties": False} for n in range(24)},
        "l24": {"type": "object"},
    },
    "$ref": "#/$defs/l0",
}
IN_A_CHILD = {"pattern": "^(?!b)"}


@pytest.mark.parametrize(
    ("schema", "instance", "verdict"),
    [
        ({"type": "string"}, "x", ValidationResult()),
        ({"required": ["a"]}, {}, ValidationResult((SchemaProblem("a", "is required"),))),
        (
            {"pattern": "^(a+)+$"},
            "a" * 50 + "!",
            ValidationResult((SchemaProblem("", "must match the pattern ^(a+)+$"),)),
        ),
        (IN_A_CHILD, "a", ValidationResult()),
        (IN_A_CHILD, "b", ValidationResult((SchemaProblem("", "must match the pattern ^(?!b)"),))),
        pytest.param({"items": {"type": "string"}}, ["é"] * 50_000, ValidationResult(), id="many items"),
    ],
)
@pytest.mark.slow
@pytest.mark.requirement("TOOLS-22")
async def test_a_value_is_checked_here_or_in_a_child(schema: Any, instance: Any, verdict: ValidationResult) -> None:
    assert await validate(schema, instance, limit_seconds=5) == verdict


@pytest.mark.parametrize(
    ("schema", "instance", "reason"),
    [
        ({"$ref": "http://evil.example/"}, 1, "external $ref"),
        (None, 1, "not a JSON object"),
        pytest.param({}, [1] * 200_000, "too large", id="a large value"),
        pytest.param({"unevaluatedItems": False}, 10**5000, "number that is too long", id="a long number"),
        ({"pattern": "^(?=("}, "x", "not a"),
        ({"pattern": r"^(?=a)(?:(a)\1?|a)+$"}, "a" * 100 + "!", "too long to match"),
        ({"items": {"pattern": "^(?=x)"}}, ["\ud800"], "lone surrogate"),
    ],
)
async def test_what_cannot_be_checked_is_noted_and_never_raised(schema: Any, instance: Any, reason: str) -> None:
    verdict = await validate(schema, instance, limit_seconds=5)
    assert (verdict.note or "").startswith("not validated: ")
    assert reason in (verdict.note or "")
    assert not verdict.valid
    assert not verdict.problems


@pytest.mark.hostile("L06")
@pytest.mark.requirement("SCHEMA-05")
@pytest.mark.parametrize("schema", [LADDER, DOUBLING])
async def test_a_check_that_explodes_is_killed_while_the_loop_turns(schema: Any, loop_watchdog: Any) -> None:
    """The host stays responsive, the result is shown as not validated."""
    loop, ticks = asyncio.get_running_loop(), []
    for number in range(1, 6):
        loop.call_later(number / 100, lambda: ticks.append(loop.time()))
    verdict = await validate(schema, {"a": 1}, limit_seconds=0.1)
    ended = loop.time()
    assert verdict == ValidationResult(note="not validated: the check took longer than 0.1 s")
    assert len([tick for tick in ticks if tick < ended]) == 5
    assert loop_watchdog.longest < 0.2


async def test_many_long_checks_at_once_all_end() -> None:
    verdicts = await asyncio.gather(*(validate(LADDER, 1, limit_seconds=0.05) for _ in range(4)))
    assert {verdict.note for verdict in verdicts} == {"not validated: the check took longer than 0.05 s"}


async def test_giving_up_a_check_ends_the_child(until: Any) -> None:
    task = asyncio.create_task(validate(LADDER, 1, limit_seconds=60))
    await until(children)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not children()


async def test_a_module_in_the_working_directory_is_not_run_by_the_child(tmp_path: Path) -> None:
    """The working directory may hold code of others: C01."""
    (tmp_path / "mcphost.py").write_text("open('caught', 'w')")
    (tmp_path / "json.py").write_text("open('caught', 'w')")
    assert (await validate(IN_A_CHILD, "a", limit_seconds=5)).valid
    assert not (tmp_path / "caught").exists()


def children() -> list[str]:
    """The worker processes of this process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            parent = int((status.parent / "stat").read_text().rpartition(")")[2].split()[1])
            command = status.read_bytes().decode()
        except (OSError, ValueError):
            continue
        if parent == os.getpid() and "validation_worker" in command:
            found.append(command)
    return found
