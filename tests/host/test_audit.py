# ruff: noqa: ASYNC240 - a test may wait for its own disk
from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcphost.host import audit
from mcphost.host.audit import AuditLog, _local_time
from mcphost.host.tool_calls.call import CallState
from tests.host.conftest import NO, YES, HostOf, echo


def unmasked(text: str) -> str:
    return text


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").split("\n") if line]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "audit.jsonl"


async def written(path: Path, *fields: dict[str, Any], mask: Callable[[str], str] = unmasked) -> None:
    log = AuditLog(path, mask)
    try:
        await asyncio.gather(*(log.record(each) for each in fields))
    finally:
        await log.aclose()


@pytest.mark.hostile("C12")
@pytest.mark.parametrize(
    "forged", ['\n{"event": "decision"}\n', "\r\n{}", "\u2028{}", "\x85{}", "\x0b\x0c\x1c{}", "\ud800", "\x7f"]
)
async def test_a_record_is_one_line_whatever_is_in_it(path: Path, forged: str) -> None:
    """No argument can pass for a record of its own, for any reader."""
    await written(path, {"arguments": {forged: forged}}, {"event": "next"})
    text = path.read_text("utf-8")
    assert len(text.splitlines()) == 2
    assert text.replace("\n", "").isprintable()
    assert records(path) == [{"arguments": {forged: forged}}, {"event": "next"}]


@pytest.mark.hostile("C07")
async def test_records_keep_their_order_in_a_private_file(path: Path) -> None:
    """The folder and the file are for this user alone."""
    await written(path, *({"n": n} for n in range(200)))
    assert [record["n"] for record in records(path)] == list(range(200))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    await written(path, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_after_a_slow_append_a_thread_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SLOW_SECONDS", -1.0)
    log, whole, disk = AuditLog(path, unmasked), os.write, threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        assert disk.wait(15)
        return whole(descriptor, data)

    assert log.record({"n": 0}).done()
    monkeypatch.setattr(os, "write", write)
    waiting = [log.record({"n": n}) for n in range(1, 20)]
    assert not any(written.done() for written in waiting)
    disk.set()
    await asyncio.gather(*waiting)
    await log.aclose()
    assert [record["n"] for record in records(path)] == list(range(20))


async def test_once_the_disk_is_quick_again_records_are_written_on_the_spot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(path, unmasked)
    monkeypatch.setattr(audit, "SLOW_SPELL", 0.0)
    monkeypatch.setattr(audit, "SLOW_SECONDS", -1.0)
    assert log.record({"n": 0}).done()
    monkeypatch.setattr(audit, "SLOW_SECONDS", 15.0)
    assert log.record({"n": 1}).done()
    await log.aclose()


@pytest.mark.hostile("C12")
async def test_a_huge_record_is_cut_to_its_fields(path: Path) -> None:
    """One call cannot fill a disk."""
    await written(path, {"tool": "t" * 10**6, "arguments": {"a": "x" * 10**6}, "allowed": True})
    (record,) = records(path)
    assert len(json.dumps(record)) < audit.RECORD_CHARACTERS
    assert record["allowed"] is True
    assert record["arguments"].startswith("left out: a record of 20000")


@pytest.mark.hostile("C10")
@pytest.mark.parametrize("secret", ["hunter2!", 'a"b\\c', "Schlüssel"])
@pytest.mark.requirement("SEC-09")
async def test_secrets_are_masked_as_they_look_in_json(path: Path, secret: str) -> None:
    """The value is known, and so is how JSON writes it."""
    await written(
        path, {"arguments": {"k": f"Bearer {secret}"}}, mask=lambda t: t.replace(json.dumps(secret)[1:-1], "•••")
    )
    assert records(path) == [{"arguments": {"k": "Bearer \u2022\u2022\u2022"}}]


def plant_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.hostile("C07")
@pytest.mark.parametrize("plant", [plant_link, Path.mkdir, os.mkfifo])
async def test_what_is_no_file_of_ours_is_not_written_to(path: Path, plant: Callable[[Path], None]) -> None:
    """A link, a folder or a pipe in the log's place is an error at once, not a wait."""
    path.parent.mkdir()
    plant(path)
    with pytest.raises(OSError, match=r"."):
        await asyncio.wait_for(written(path, {}), 15)
    assert not (path.parent / "elsewhere").exists()


@pytest.mark.hostile("C12")
async def test_a_record_torn_by_a_full_disk_is_an_error_and_spoils_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full in the middle of a line."""
    whole, log = os.write, AuditLog(path, unmasked)
    await log.record({"n": 1})
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:4]))
    with pytest.raises(OSError, match="No space") as raised:
        await log.record({"n": 2})
    assert raised.value.errno == errno.ENOSPC
    monkeypatch.setattr(os, "write", whole)
    await log.record({"n": 3})
    await log.aclose()
    assert path.read_text().splitlines() == ['{"n":1}', '{"n"', '{"n":3}']


@pytest.mark.hostile("C12")
async def test_a_large_log_makes_way_for_a_new_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is bounded."""
    monkeypatch.setattr(audit, "ROTATE", 18)
    await written(path, *({"n": n} for n in range(100, 104)))
    assert len(records(path)) + len(records(path.with_name("audit.jsonl.1"))) == 4
    assert len(records(path)) < 4


@pytest.mark.hostile("C12")
async def test_a_log_deleted_while_in_use_begins_anew(path: Path) -> None:
    """Deleted while open."""
    log = AuditLog(path, unmasked)
    await log.record({"n": 1})
    path.unlink()
    await log.record({"n": 2})
    await log.aclose()
    assert records(path) == [{"n": 2}]


async def test_a_log_that_another_program_moved_away_begins_anew(path: Path) -> None:
    log, moved = AuditLog(path, unmasked), path.with_name("moved")
    await log.record({"n": 1})
    path.rename(moved)
    await log.record({"n": 2})
    moved.replace(path)
    await log.record({"n": 3})
    await log.aclose()
    assert records(path) == [{"n": 1}, {"n": 3}]


@pytest.mark.hostile("C07")
@pytest.mark.parametrize("plant", [plant_link, Path.mkdir, os.mkfifo])
async def test_what_takes_the_place_of_an_open_log_is_not_written_to(path: Path, plant: Callable[[Path], None]) -> None:
    log, moved = AuditLog(path, unmasked), path.with_name("moved")
    await log.record({"n": 1})
    path.rename(moved)
    plant(path)
    for n in (2, 3):
        with pytest.raises(OSError, match=r"."):
            await log.record({"n": n})
    path.rmdir() if path.is_dir() else path.unlink()
    moved.rename(path)
    await log.record({"n": 4})
    await log.aclose()
    assert records(path) == [{"n": 1}, {"n": 4}]
    assert not (path.parent / "elsewhere").exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
async def test_a_closed_log_holds_no_file_open(path: Path) -> None:
    log = AuditLog(path, unmasked)
    await log.record({"n": 1})
    assert str(path) in _open_files()
    await log.aclose()
    assert str(path) not in _open_files()


def _open_files() -> set[str]:
    return {os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}


@pytest.mark.parametrize("moment", ["2026-10-25T00:59:59.999+00:00", "2026-10-25T01:00:00.007+00:00"])
async def test_the_time_of_a_record_is_local_with_its_offset(
    path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after a clock is set back by an hour."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        told = datetime.fromisoformat(moment)
        assert _local_time(told.timestamp()) == told.astimezone().isoformat(timespec="milliseconds")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.hostile("P06")
@pytest.mark.requirement("TOOLS-17")
async def test_each_call_has_one_decision_and_if_allowed_one_outcome(host: HostOf, path: Path) -> None:
    """The configured name is written down, never what the server calls itself."""
    answers = (YES, NO, YES)
    async with host(a=echo("--name", "filesystem"), answers=answers, dependencies={"audit_path": path}) as running:
        for tool in ("echo", "echo", "fail"):
            await running.run("a", tool, {"text": "x"})
        await running.run("a", "echo", {"text": 7})
        await running.run("a", "no such tool")
    found = [(r["event"], r["call"], r.get("allowed", r.get("outcome"))) for r in records(path)]
    assert found == [
        ("decision", 1, True), ("outcome", 1, "done"), ("decision", 2, False), ("decision", 3, True),
        ("outcome", 3, "failed"),
    ]  # fmt: skip
    now = datetime.now().astimezone()
    moments = [datetime.fromisoformat(record["time"]) for record in records(path)]
    assert timedelta() <= now - moments[0] < timedelta(minutes=1)
    assert moments == sorted(moments)
    decision = records(path)[0]
    assert {k: decision[k] for k in ("server", "tool", "asked_by", "arguments", "by", "lifetime")} == {
        "server": "a", "tool": "echo", "asked_by": "you", "arguments": {"text": "x"}, "by": "user", "lifetime": "once",
    }  # fmt: skip
    assert "echo.py" in decision["sent_to"]
    assert records(path)[2]["reason"] == "not today"


@pytest.mark.hostile("C12")
@pytest.mark.parametrize(
    ("mode", "state", "alarms"),
    [("on", CallState.DONE, 1), ("required", CallState.DECLINED, 1), ("off", CallState.DONE, 0)],
)
async def test_a_log_that_cannot_be_written_is_one_alarm_or_a_refusal(
    host: HostOf, path: Path, tmp_path: Path, mode: str, state: CallState, alarms: int
) -> None:
    """With audit = "required" what cannot be recorded does not run, and is not remembered as allowed."""
    path.parent.mkdir()
    path.mkdir()
    record = tmp_path / "wire"
    async with host(a=echo("--record", record), policy={"audit": mode}, dependencies={"audit_path": path}) as running:
        calls = [await running.run("a", "echo", {"text": "x"}) for _ in range(3)]
    assert [call.state for call in calls] == [state] * 3
    assert len(running.alarms) == alarms
    assert record.read_text().count("tools/call") == (0 if mode == "required" else 3)
    if mode == "required":
        assert "the audit log cannot be written: Is a directory" in str(calls[0].error)


async def test_required_without_a_log_refuses(host: HostOf) -> None:
    async with host(a=echo(), policy={"audit": "required"}) as running:
        call = await running.run("a", "echo", {"text": "x"})
    assert call.state is CallState.DECLINED


async def test_an_alarm_comes_again_once_the_log_worked_in_between(host: HostOf, path: Path) -> None:
    path.mkdir(parents=True)
    async with host(a=echo(), dependencies={"audit_path": path}) as running:
        await running.run("a", "echo", {"text": "x"})
        with pytest.raises(OSError, match="directory"):
            await running._audit_log.record({})  # what came before it could not be written either
        path.rmdir()
        await running.run("a", "echo", {"text": "x"})
        await running._audit_log.record({})  # then everything before it is written too
        path.unlink()
        path.mkdir()
        await running.run("a", "echo", {"text": "x"})
    assert len(running.alarms) == 2
