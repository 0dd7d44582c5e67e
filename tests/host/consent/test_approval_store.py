"""Approvals that several mcphosts share: what one revokes stops holding in the others at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer
from mcphost.host.events import GrantsChanged
from mcphost.host.tool_calls.call import CallState
from tests.conftest import Until
from tests.host.conftest import NO, FileStore, HostOf, echo

pytestmark = pytest.mark.slow

ALWAYS = Answer(allow=True, lifetime=Lifetime.ALWAYS)
SESSION = Answer(allow=True, lifetime=Lifetime.SESSION)
RULE = Answer(allow=True, lifetime=Lifetime.ALWAYS, when={"text": "^x"})

Shared = Callable[..., Any]


@pytest.fixture
def shared(host: HostOf, tmp_path: Path) -> Shared:
    """`shared(ALWAYS)`: a host with these answers over one state folder."""
    return lambda *answers: host(a=echo(), answers=answers, dependencies={"store": FileStore(tmp_path)})


def saved(folder: Path) -> Callable[[], bool]:
    return (folder / "approvals.toml").exists


async def test_what_another_mcphost_revokes_is_asked_about_at_once(
    shared: Shared, tmp_path: Path, until: Until
) -> None:
    async with shared(ALWAYS) as first:
        assert (await first.run("a", "echo", {"text": "1"})).state is CallState.DONE
        await until(saved(tmp_path))
        async with shared(NO) as second:
            assert (await second.run("a", "echo", {"text": "2"})).state is CallState.DONE
            assert second.approver.questions == []
            first.consent.revoke("a", "echo")
            await until(lambda: "echo" not in (tmp_path / "approvals.toml").read_text())
            assert (await second.run("a", "echo", {"text": "3"})).state is CallState.DECLINED
            assert len(second.approver.questions) == 1
            assert second.consent.grants() == []
            assert GrantsChanged() in second.events


async def test_a_rule_revoked_by_another_mcphost_no_longer_holds(shared: Shared, tmp_path: Path, until: Until) -> None:
    async with shared(RULE, ALWAYS) as first:
        await first.run("a", "echo", {"text": "x1"})
        await first.run("a", "echo", {"text": "y"})
        await until(lambda: saved(tmp_path)() and "always" in (tmp_path / "approvals.toml").read_text())
        async with shared(NO) as second:
            first.consent.revoke("a", "echo")  # the whole tool; the rule stays
            await until(lambda: 'lifetime = "once"' in (tmp_path / "approvals.toml").read_text())
            assert (await second.run("a", "echo", {"text": "x2"})).state is CallState.DONE
            assert (await second.run("a", "echo", {"text": "y"})).state is CallState.DECLINED


async def test_approvals_for_this_run_are_not_revoked_by_others(shared: Shared, tmp_path: Path, until: Until) -> None:
    async with shared(ALWAYS) as first, shared(SESSION, NO) as second:
        await second.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))  # that the second has seen the tool
        await first.run("a", "echo", {"text": "2"})
        await until(lambda: "always" in (tmp_path / "approvals.toml").read_text())
        first.consent.revoke("a", "echo")
        await until(lambda: "echo" not in (tmp_path / "approvals.toml").read_text())
        assert (await second.run("a", "echo", {"text": "3"})).state is CallState.DONE
        (grant,) = second.consent.grants()
        assert grant.lifetime is Lifetime.SESSION


async def test_what_another_allows_for_good_is_not_asked_about_again(
    shared: Shared, tmp_path: Path, until: Until
) -> None:
    async with shared(ALWAYS) as first, shared(NO) as second:
        await first.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))
        assert (await second.run("a", "echo", {"text": "2"})).state is CallState.DONE


async def test_a_deleted_file_revokes_everything(shared: Shared, tmp_path: Path, until: Until) -> None:
    async with shared(ALWAYS, NO) as one:
        await one.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))
        (tmp_path / "approvals.toml").unlink()
        assert (await one.run("a", "echo", {"text": "2"})).state is CallState.DECLINED


async def test_a_file_deleted_during_a_save_revokes_everything(host: HostOf, tmp_path: Path) -> None:
    """The writing thread returns only after the file was deleted and the next call read its version."""

    class Late(FileStore):
        deleted, looked = threading.Event(), threading.Event()

        def update(self, name: str, change: Any) -> None:
            super().update(name, change)
            if name == "approvals":
                (tmp_path / f"{name}.toml").unlink()
                self.deleted.set()
                self.looked.wait(20)

        def version(self, name: str) -> object:
            if self.deleted.is_set():
                self.looked.set()
            return super().version(name)

    store = Late(tmp_path)
    async with host(a=echo(), answers=(ALWAYS, NO), dependencies={"store": store}) as one:
        await one.run("a", "echo", {"text": "1"})
        await asyncio.to_thread(store.deleted.wait, 20)
        assert (await one.run("a", "echo", {"text": "2"})).state is CallState.DECLINED


async def test_an_unreadable_file_is_reported_and_not_overwritten(shared: Shared, tmp_path: Path, until: Until) -> None:
    async with shared(ALWAYS) as one:
        await one.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))
        (tmp_path / "approvals.toml").unlink()
        (tmp_path / "approvals.toml").symlink_to(tmp_path / "elsewhere")
        await one.run("a", "echo", {"text": "2"})
        assert any("could not be read again" in alarm for alarm in one.alarms)


async def test_an_unchanged_file_is_not_read_again(shared: Shared, tmp_path: Path, until: Until) -> None:
    class Counting(FileStore):
        reads = 0

        def read(self, name: str) -> Any:
            self.reads += name == "approvals"
            return super().read(name)

    async with shared(ALWAYS) as first:
        await first.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))
    store = Counting(tmp_path)
    async with shared() as second:
        second._approvals._store = store
        for text in ("2", "3", "4"):
            await second.run("a", "echo", {"text": text})
        assert store.reads == 0


REVOKES = """
import sys
from pathlib import Path
from mcphost.config.state import StateStore
from mcphost.host.consent.approval_store import from_toml, to_toml

StateStore(Path(sys.argv[1]), print).update("approvals", lambda data: to_toml([]))
"""


@pytest.mark.slow
async def test_a_revocation_in_another_process_holds_for_the_very_next_call(
    shared: Shared, tmp_path: Path, until: Until
) -> None:
    async with shared(ALWAYS, NO) as one:
        await one.run("a", "echo", {"text": "1"})
        await until(saved(tmp_path))
        assert (await one.run("a", "echo", {"text": "2"})).state is CallState.DONE
        subprocess.run([sys.executable, "-c", REVOKES, str(tmp_path)], check=True, timeout=60)  # noqa: ASYNC221
        assert (await one.run("a", "echo", {"text": "3"})).state is CallState.DECLINED
