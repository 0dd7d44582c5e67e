"""Watched resources: subscribed to, read again when they change, restored after a reconnect."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mcphost.errors import CapabilityMissing, ResourceMissing
from mcphost.host.connections import subscriptions
from mcphost.host.connections.connection import ServerState
from mcphost.host.connections.subscriptions import Subscription, SubscriptionState
from mcphost.host.events import ResourceUpdated
from mcphost.protocol.models.content import ResourceContents
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, asked
from tests.host.connections.offers import README, serve

ALLOW = {"default": "allow"}

FOLDER, CHILD = "memo:///folder", "memo:///folder/child"


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed resources are read again soon."""
    monkeypatch.setattr(subscriptions, "REREAD_DELAY", 0.02)
    monkeypatch.setattr(subscriptions, "REREAD_PAUSE", 0.1)


def text_of(watch: Subscription) -> str | None:
    if watch.result is None:
        return None
    (contents,) = watch.result.contents
    assert isinstance(contents, ResourceContents)
    return contents.text


def updates(running: RecordingHost, uri: str = README) -> int:
    return running.events.count(ResourceUpdated("a", uri))


@pytest.mark.parametrize(
    ("watched", "updated", "covered"),
    [
        ("x:///a", "x:///a", True),
        ("x:///a", "x:///a/b", True),
        ("x:///a/", "x:///a/b", True),
        ("x:///a", "x:///ab", False),
        ("x:///a/b", "x:///a", False),
        ("x:///a", "X:///a", False),
    ],
)
@pytest.mark.requirement("RES-05")
def test_an_update_concerns_a_resource_and_those_above_it(watched: str, updated: str, covered: bool) -> None:
    assert Subscription(watched).covers(updated) is covered


@pytest.mark.requirement("RES-05", "RES-06")
async def test_a_subscribed_resource_is_read_again_when_it_changes(host: HostOf, until: Until, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        watch = await running.resources.subscribe("a", README)
        assert await running.resources.subscribe("a", README) is watch
        assert (watch.state, watch.updates, watch.stale, watch.result) == (SubscriptionState.WATCHING, 0, False, None)
        assert dict(running.resources.subscriptions("a")) == {README: watch}
        assert updates(running) == 1
        await running.run("a", "change", {"uri": README})
        await until(lambda: text_of(watch) == "changed 1")
        assert (watch.updates, watch.stale, updates(running)) == (1, False, 3)
        await running.resources.unsubscribe("a", README)
        await running.resources.unsubscribe("a", "memo:///never-watched")
        await running.run("a", "change", {"uri": README})
        assert (dict(running.resources.subscriptions("a")), watch.updates, updates(running)) == ({}, 1, 4)
        assert not [event for event in running.events if getattr(event, "uri", README) != README]
    assert asked(tmp_path / "wire", "resources/subscribe") == [{"uri": README}]
    assert asked(tmp_path / "wire", "resources/unsubscribe") == [{"uri": README}]
    assert len(asked(tmp_path / "wire", "resources/read")) == 1


@pytest.mark.requirement("RES-05")
async def test_a_change_below_a_watched_resource_is_one_of_it(host: HostOf, until: Until) -> None:
    async with host(a=serve(), policy=ALLOW) as running:
        watch = await running.resources.subscribe("a", FOLDER)
        await running.run("a", "change", {"uri": CHILD})
        await until(lambda: watch.result)
        assert watch.updates == 1
        assert list(running.resources.subscriptions("a")) == [FOLDER]


@pytest.mark.hostile("F03")
async def test_a_flood_of_updates_is_read_a_few_times(host: HostOf, until: Until, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire"), policy=ALLOW) as running:
        watch = await running.resources.subscribe("a", README)
        await running.run("a", "change", {"uri": README, "times": 5000})
        await until(lambda: text_of(watch) == "changed 5000" and not watch.stale)
        assert watch.updates == 5000
        assert updates(running) < 60
    assert len(asked(tmp_path / "wire", "resources/read")) < 30


@pytest.mark.usefixtures("impatient")
@pytest.mark.requirement("HTTP-11", "LIFE-27")
async def test_subscriptions_are_restored_and_read_after_a_reconnect(
    host: HostOf, until: Until, tmp_path: Path
) -> None:
    async with host(a=serve("--record", tmp_path / "wire"), policy=ALLOW) as running:
        watch = await running.resources.subscribe("a", README)
        pid = running.servers["a"].process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: running.servers["a"].state is ServerState.RECONNECTING)
        assert watch.state.value == "waiting for the server"
        await until(lambda: text_of(watch) == "# Read me")
        assert watch.state.value == "watching"
        await running.run("a", "change", {"uri": README})
        await until(lambda: text_of(watch) == "changed 1")
        running.servers["a"].stop()
        await until(lambda: watch.state is SubscriptionState.WAITING)
        await running.resources.unsubscribe("a", README)
        running.servers["a"].start()
        await running.servers.ready()
    assert len(asked(tmp_path / "wire", "resources/subscribe")) == 2
    assert asked(tmp_path / "wire", "resources/unsubscribe") == []


@pytest.mark.requirement("RES-04")
async def test_a_server_that_refuses_leaves_nothing_watched(host: HostOf, until: Until, tmp_path: Path) -> None:
    never = serve("--record", tmp_path / "wire", "--no-subscribe")
    async with host(a=never, b=serve("--without", "resources/subscribe")) as running:
        await running.servers.ready()
        with pytest.raises(CapabilityMissing):
            await running.resources.subscribe("a", README)
        with pytest.raises(Exception, match="unknown method"):
            await running.resources.subscribe("b", README)
        assert running.events.count(ResourceUpdated("b", README)) == 1  # else a screen kept the mark of a waiting one
        assert dict(running.resources.subscriptions("a")) == dict(running.resources.subscriptions("b")) == {}
        kept = running.servers["b"].subscriptions.all[README] = Subscription(README)
        running.servers["b"].restart()
        await until(lambda: kept.state is SubscriptionState.REFUSED)
        assert "unknown method" in str(kept.error)
    assert asked(tmp_path / "wire", "resources/subscribe") == []


async def test_a_reading_that_fails_is_kept_beside_what_was_read_before(host: HostOf, until: Until) -> None:
    async with host(a=serve(), policy=ALLOW) as running:
        watch = await running.resources.subscribe("a", "memo:///gone")
        running.servers["a"].subscriptions.updated("memo:///gone")
        await until(lambda: isinstance(watch.error, ResourceMissing))
        assert (watch.state, watch.result) == (SubscriptionState.WATCHING, None)


async def test_watching_and_letting_go_at_once_ends_without_a_watch(host: HostOf, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire")) as running:
        await running.servers.ready()
        await asyncio.gather(running.resources.subscribe("a", README), running.resources.unsubscribe("a", README))
        await running.resources.unsubscribe("a", README)
        assert dict(running.resources.subscriptions("a")) == {}
    assert len(asked(tmp_path / "wire", "resources/unsubscribe")) == 1
