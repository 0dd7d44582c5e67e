"""The history of calls across runs, and what may happen to its file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.history.past_call import (
    FIELD_CHARACTERS,
    PastCallQuery,
    kept_text,
    masked_paths,
    recalled,
    without_masked,
)
from mcphost.host.history.store import RESULT_BYTES
from mcphost.host.tool_calls.call import ArgumentReferences, CallState
from tests.conftest import Until
from tests.host.conftest import NO, YES, HostOf, echo, wire
from tests.host.history.histories import SECRET, run

ALL = PastCallQuery(most=10_000)
ALLOW = {"default": "allow"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def left_by(path: Path) -> list[tuple[str, int]]:
    """The files of the history and their rights."""
    return [(each.name, each.lstat().st_mode & 0o777) for each in path.parent.glob("history*")]


def content(path: Path) -> bytes:
    return path.read_bytes()


async def test_calls_of_earlier_runs_are_found(host: HostOf, path: Path) -> None:
    async with host(a=echo(), answers=(YES, NO), dependencies={"history_path": path}) as first:
        await first.run("a", "echo", {"text": "one"})
        await first.run("a", "echo", {"text": "two"})
        assert [(each.name, each.state) for each in await first.history.last_calls("a", "echo")] == [
            ("call 2", CallState.DECLINED), ("call 1", CallState.DONE),
        ]  # fmt: skip
    async with host(a=echo(), dependencies={"history_path": path}) as second:
        declined, done = await second.history.find(ALL)
        assert (declined.arguments, declined.state, declined.sent) == ({"text": "two"}, CallState.DECLINED, False)
        assert (done.arguments, done.state, done.has_result) == ({"text": "one"}, CallState.DONE, True)
        assert done.identity == second.config.servers["a"].identity
        assert await second.history.last_calls("a", "echo", 1) == [declined]
        assert second.alarms == first.alarms == []
    assert left_by(path) == [("history.sqlite", 0o600)]


async def test_a_result_is_kept_with_its_call(path: Path) -> None:
    result = {"content": [], "structuredContent": {"a": [1, "\ud800", None]}}
    async with run(path) as before:
        before.add({"a": 1}, result)
    async with run(path) as here:
        (call,) = await here.history.find(ALL)
        assert await here.history.result(call) == result


async def test_a_large_result_is_kept_by_its_size_and_digest(path: Path) -> None:
    rows = {"structuredContent": {"rows": [{"n": n} for n in range(10_000)]}, "content": []}
    async with run(path) as here:
        here.add({}, rows)
        here.add({"text": "x" * RESULT_BYTES})
        small, large = await here.history.find(ALL)
        assert await here.history.result(large) is None
    written = (
        b'{"structuredContent":{"rows":[' + b",".join(b'{"n":%d}' % n for n in range(10_000)) + b']},"content":[]}'
    )
    assert (large.result_size, large.result_digest) == (len(written), sha256(written).hexdigest())
    assert (small.argument_text, small.has_result) == (None, True)


async def test_the_last_tools_are_those_of_all_runs(path: Path) -> None:
    async with run(path) as before:
        for tool in ("a", "b", "a", "c"):
            before.add(tool=tool)
    async with run(path) as here:
        here.add(tool="b", server="t")
        here.begin(tool="b")
        assert await here.history.last_used() == [("s", "b"), ("t", "b"), ("s", "c"), ("s", "a")]
        assert await here.history.last_used(2) == [("s", "b"), ("t", "b")]


async def test_words_are_found_in_any_case_and_in_all_fields(path: Path) -> None:
    async with run(path) as here:
        first = here.add({"City": "ÅLESUND"}, tool="Weather")
        here.add({"city": "Oslo"}, tool="weather", declined=True)
        here.add({"city": "Oslo"}, tool="weather", server="other")
        for words, numbers in (
            (["ålesund"], [first.number]), (["weather", "oslo"], [3, 2]), (["declined"], [2]), (["other"], [3]),
            (["100%"], []), (["o_lo"], []),
        ):  # fmt: skip
            found = await here.history.find(PastCallQuery(words=words))
            assert [each.number for each in found] == numbers


@pytest.mark.hostile("C10")
async def test_no_secret_is_kept(path: Path) -> None:
    async with run(path) as here:
        call = here.begin({"text": f"a {SECRET}", SECRET: 1, "n": 424242, "deep": {"l": [SECRET]}})
        here.end(call, {"content": [{"type": "text", "text": SECRET}], "n": [424242.5]})
        (kept,) = await here.history.find(ALL)
    assert kept.arguments == {"text": "a •••", "•••": 1, "n": "•••", "deep": {"l": ["•••"]}}
    assert SECRET.encode() not in content(path)


def test_masked_values_are_left_out_one_by_one() -> None:
    arguments = {"a": "x", "b": "a •••", "c": {"d": 1, "e": ["•••"]}, "•••": 2, "f": [{"g": "•••"}]}
    assert without_masked(arguments) == ({"a": "x", "c": {"d": 1}}, ["b", "c.e", "•••", "f"])
    assert masked_paths({"a": ["x", 1]}) == []


async def test_without_a_history_no_file_is_made_or_touched(path: Path) -> None:
    async with run(path, history=False) as here:
        here.add()
        assert (await here.history.find(ALL), await here.history.last_used()) == ([], [("s", "act")])
    assert left_by(path) == []
    async with run(path) as here:
        here.add()
    before = content(path)
    async with run(path, history=False) as here:
        here.add()
    assert content(path) == before


def written_until_killed(path: Path) -> list[int]:
    """The numbers of the calls that a program had kept when it was killed."""
    script = Path(__file__).with_name("killed.py")
    words = [sys.executable, "-m", f"tests.host.history.{script.stem}", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(script.parents[3])}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdout is not None
        kept = [next(writing.stdout) for _ in range(20)]
        writing.kill()
        kept += writing.stdout.readlines()
    return [int(line) for line in kept if line.endswith("\n")]


async def test_a_killed_mcphost_loses_no_call_that_was_kept(path: Path) -> None:
    """Neither does another one that writes the same file meanwhile."""
    async with run(path) as here:
        writing, added = asyncio.create_task(asyncio.to_thread(written_until_killed, path)), 0
        while not writing.done():
            here.add({"a": f"here {added}"})
            await here.history.count()
            added += 1
        here.add({"a": "after"})
        found = [each.arguments["a"] for each in reversed(await here.history.find(ALL))]
        assert here.alarms == []
    kept = [each for each in found if isinstance(each, int)]
    assert kept[: len(writing.result())] == writing.result()
    assert [each for each in found if isinstance(each, str)] == [*(f"here {n}" for n in range(added)), "after"]


async def test_a_call_is_written_soon_after_its_end(path: Path, until: Until) -> None:
    async with run(path) as here:
        here.add()
        await until(lambda: left_by(path))


async def test_several_runs_write_the_same_file_at_once(path: Path) -> None:
    async with run(path) as one, run(path) as other:
        for number in range(200):
            (one if number % 2 else other).add({"a": number})
        await one.history.find(ALL)
        await other.history.find(ALL)
        assert len(await one.history.find(ALL)) == 200
        assert {each.run for each in await one.history.find(ALL)} == {one.history.run, other.history.run}
        assert one.alarms == other.alarms == []


def link(path: Path) -> None:
    path.symlink_to(path.with_name("history-target"))


def link_of_wal(path: Path) -> None:
    link(path.with_name("history.sqlite-wal"))


@pytest.mark.hostile("C07")
@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (link, "is a link"),
        (os.mkfifo, "is not a regular file"),
        (os.mkdir, "is not a regular file"),
        (link_of_wal, "is a link"),
    ],
)
async def test_a_planted_file_is_left_alone_and_reported_once(
    path: Path, plant: Callable[[Path], object], words: str
) -> None:
    plant(path)
    before = left_by(path)
    async with run(path) as here:
        here.add()
        assert await here.history.last_used() == [("s", "act")]
        here.add()
    (alarm,) = here.alarms
    assert alarm.startswith("the history of calls cannot be written: ")
    assert words in alarm
    assert left_by(path) == before


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE calls (id)")


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage" * 999)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def without_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE results")


def with_trigger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END")


@pytest.mark.hostile("C07")
@pytest.mark.parametrize("damage", [garbage, other_program, truncated, without_table, with_trigger])
async def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path, damage: Callable[[Path], object]) -> None:
    if damage not in (garbage, other_program):
        async with run(path) as before:
            for _ in range(50):
                before.add({"a": "x" * 1000})
    damage(path)
    async with run(path) as here:
        here.add({"a": "new"})
        assert [each.arguments for each in await here.history.find(ALL)] == [{"a": "new"}]
    assert [words for alarm in here.alarms for words in ("damaged-1",) if words in alarm] == ["damaged-1"]
    assert ("history.sqlite.damaged-1", 0o600) in left_by(path)


async def test_the_file_of_a_newer_mcphost_is_left_as_it_is(path: Path) -> None:
    async with run(path) as here:
        here.add()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    before = content(path)
    async with run(path) as here:
        here.add()
        assert await here.history.last_used() == [("s", "act")]
    assert "was written by a newer mcphost" in here.alarms[0]
    assert content(path) == before


@pytest.mark.hostile("C07")
async def test_rows_of_another_program_are_passed_over(path: Path) -> None:
    async with run(path) as here:
        here.add({"a": 1})
        here.add({"a": 2})
        here.add({"a": 3})
        for _ in range(4):
            here.add()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE calls SET tool = CAST(x'ff' AS TEXT) WHERE id = 4")
        database.execute("UPDATE calls SET duration = 9e999 WHERE id = 5")
        database.execute("UPDATE calls SET time = -9e999 WHERE id = 6")
        database.execute("UPDATE calls SET argument_text = ? WHERE id = 7", ('{"a": "' + "x" * 300_000 + '"}',))
        database.execute("UPDATE calls SET state = 'eaten' WHERE id = 1")
        database.execute("UPDATE calls SET server = x'00' WHERE id = 2")
        database.execute("UPDATE calls SET argument_text = '[[' WHERE id = 3")
        database.execute("UPDATE results SET json = '[1]'")
    async with run(path) as here:
        (call,) = await here.history.find(ALL)
        assert (call.id, call.arguments, await here.history.result(call)) == (3, {}, None)


FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from typing import Any
from tests.host.history.histories import run

async def main():
    async with run(Path(sys.argv[1])) as here:
        here.add()
        await here.history.count()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        for _ in range(5):
            here.add({"a": "x" * 50_000})
            await here.history.count()
        print(here.alarms)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        here.add()
        print(await here.history.count(), len(here.alarms))

asyncio.run(main())
"""


def test_a_full_disk_is_reported_once_and_the_history_goes_on(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    words = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=True)
    alarms, last = done.stdout.splitlines()
    assert alarms.count("the history of calls cannot be written") == 1
    assert last == "2 1"


async def test_the_oldest_calls_go_where_the_file_is_too_large(path: Path) -> None:
    async with run(path, history_bytes=1_000_000) as here:
        for number in range(40):
            here.add({"n": number}, {"content": [{"type": "text", "text": "x" * 50_000}]})
            await here.history.count()
        kept = [each.arguments["n"] for each in await here.history.find(ALL)]
    assert kept == list(range(39, 39 - len(kept), -1))
    assert 0 < len(kept) < 20
    assert len(content(path)) < 1_200_000


async def test_calls_that_are_too_old_go(path: Path) -> None:
    async with run(path) as before:
        before.begin({"a": "old"}).time -= 3 * 86_400
        before.end(before.registry.find(1))
        before.add({"a": "new"})
    async with run(path, history_days=2) as here:
        here.add({"a": "now"})
        assert [each.arguments["a"] for each in await here.history.find(ALL)] == ["now", "new"]


@pytest.mark.hostile("C10")
async def test_a_masked_value_is_never_sent(host: HostOf, path: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with run(path) as before:
        before.add({"text": f"a {SECRET}"}, tool="echo", server="a")
    async with host(a=echo("--record", record), policy=ALLOW, dependencies={"history_path": path}) as here:
        (past,) = await here.history.find(ALL)
        call = here.tool_calls.repeat(recalled(past, None))
        await here.end_of(call)
        assert str(call.error) == "text: is masked in the history; write its value again"
        assert (await here.run("a", "echo", {"text": "a •••"})).state is CallState.DONE  # the user wrote it
    assert [each["params"]["arguments"] for each in wire(record, "tools/call")] == [{"text": "a •••"}]


async def test_the_references_of_a_saved_call_are_masked(path: Path) -> None:
    async def resolve(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async with run(path) as here:
        call = here.begin({"text": "a ${KEY}", "other": "${OPEN}"})
        references = ArgumentReferences(("${KEY}",), frozenset(), resolve)
        call.request = replace(call.request, references=references)
        here.end(call)
        (kept,) = await here.history.find(ALL)
    assert kept.arguments == {"text": "a •••", "other": "${OPEN}"}


def test_a_secret_across_the_limit_of_a_field_is_masked() -> None:
    text = "x" * (FIELD_CHARACTERS - len(SECRET) // 2) + SECRET
    kept = kept_text(text, lambda each: each.replace(SECRET, "***"))
    assert SECRET[:4] not in kept
    assert len(kept) <= FIELD_CHARACTERS
