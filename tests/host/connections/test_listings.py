"""Resources, prompts, completion and tasks through a host, over a real server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems
from mcphost.config import Config, ServerConfig
from mcphost.errors import (
    Declined,
    InvalidArguments,
    ResourceMissing,
    ServerNotReady,
    SessionExpired,
    UnknownName,
)
from mcphost.host import resources
from mcphost.host.catalog import CatalogKind, usable
from mcphost.host.connections import listings as offers
from mcphost.host.connections.listings import Listing, ListingSource
from mcphost.host.connections.subscriptions import SubscriptionState
from mcphost.host.events import PromptsChanged, ResourcesChanged, ToolsChanged
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.content import ResourceContents
from mcphost.protocol.models.prompts import Completion, PromptRef, TemplateRef
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.jsonrpc import Request, Response
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, asked, echo, settings
from tests.host.connections.offers import ODD, README, listed, serve

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}


def changing(*lists: Sequence[str], late: bool = False) -> tuple[Listing[Tool], list[int]]:
    """A list whose server announces a change with each listing but the last (``late``: after it), and its sizes."""
    left, read = list(lists), list[int]()

    async def fetch(client: Client, again: bool) -> ListedItems[Tool]:
        names = left.pop(0)
        read.append(len(names))
        if left and late:
            asyncio.get_running_loop().call_later(0.02, listing.mark_stale)
        elif left:
            listing.mark_stale()
        return ListedItems([Tool.read({"name": name, "inputSchema": {"type": "object"}}) for name in names])

    source = ListingSource(CatalogKind.TOOLS, fetch, usable)
    ignore: Any = lambda *_: None  # noqa: E731
    listing = Listing(source, ignore, ignore, ignore, ignore)
    listing.mark_stale()
    return listing, read


ANY: Any = ServerConfig(command="x")
NO_CLIENT: Any = None


@pytest.mark.requirement("TOOLS-05")
@pytest.mark.parametrize("late", [False, True])
async def test_a_change_during_or_right_after_a_listing_is_listed_again(late: bool) -> None:
    listing, read = changing("a", "ab", "abc", late=late)
    await listing.settled(NO_CLIENT, ANY, announces=True)
    assert ([tool.name for tool in listing.items], read) == (["a", "b", "c"], [1, 2, 3])


async def test_endless_changes_are_listed_a_few_times() -> None:
    listing, read = changing(*["a"] * 99)
    await listing.settled(NO_CLIENT, ANY, announces=True)
    assert len(read) == offers.MOST_CHANGES


async def test_a_change_is_awaited_only_if_changes_are_announced() -> None:
    clock = asyncio.get_running_loop().time
    for announces, least in ((False, 0.0), (True, offers.ANNOUNCE_SECONDS)):
        listing, read = changing("a")
        await listing.current(NO_CLIENT, ANY)
        began = clock()
        await listing.settled(NO_CLIENT, ANY, announces=announces)
        assert read == [1]
        assert clock() - began >= least * 0.9


async def test_a_run_that_uses_no_resources_asks_for_none(host: HostOf, tmp_path: Path) -> None:
    record = tmp_path / "wire"
    async with host(a=serve("--record", record), dependencies={"prefetch": False}) as running:
        await running.servers.ready()
        await running.servers["a"].ping()
        assert asked(record, "tools/list")
        assert not asked(record, "resources/list")
        await running.resources.current("a", CatalogKind.RESOURCES)
        assert running.catalog.resources("a")
    assert len(asked(record, "resources/list")) == 1
    assert not asked(record, "prompts/list")
    assert not asked(record, "notifications/cancelled")


# What all servers offer.


@pytest.mark.requirement("RES-01", "PROMPT-01", "PAGE-01", "RES-07", "HOST-02")
@pytest.mark.parametrize("page", [0, 1, 2])
async def test_everything_a_server_offers_is_in_the_catalog_under_its_name(host: HostOf, page: int) -> None:
    async with host(a=serve("--page", page), b=serve("--no-tools"), c=echo()) as running:
        await running.servers.ready()
        for server in "abc":
            await listed(running, server)
        catalog, uris = running.catalog, [README, "memo:///pixel.png", "memo:///folder", ODD]
        assert [offered.key for offered in catalog.resources()] == [(name, uri) for name in "ab" for uri in uris]
        assert [offered.template.name for offered in catalog.templates("a")] == ["note", "search"]
        assert [offered.key for offered in catalog.prompts()] == [(n, p) for n in "ab" for p in ("review", "hello")]
        assert catalog.prompt("a", "review").label == "Review code"
        assert (catalog.resource("a", ODD), catalog.resource("c", ODD)) == (catalog.resources("a")[3].resource, None)
        with pytest.raises(UnknownName, match="a has no prompt 'x'; it has: review, hello"):
            catalog.prompt("a", "x")
        ours = running.servers["a"].listings
        assert [(each.name, each.reason) for each in ours.resources.rejected] == [
            (README, "the server lists this URI twice; the first is used")
        ]
        assert [each.name for each in ours.templates.rejected] == ["memo:///{"]
        assert "the URI template has a brace without its counterpart" in ours.templates.rejected[0].reason
        assert {type(event) for event in running.events} >= {ToolsChanged, ResourcesChanged, PromptsChanged}


@pytest.mark.requirement("CAP-02", "PROMPT-01")
async def test_only_what_is_offered_is_listed(host: HostOf, tmp_path: Path) -> None:
    async with host(a=echo("--record", tmp_path / "wire")) as running:
        await running.servers.ready()
        await listed(running)
        assert (running.catalog.resources(), running.catalog.prompts()) == ((), ())
        await running.resources.relist("a", CatalogKind.PROMPTS)
        assert "does not offer prompts" in str(running.servers["a"].listings.prompts.notice)
    assert not [method for method in ("resources/list", "prompts/list") if asked(tmp_path / "wire", method)]


async def test_a_server_without_templates_has_none_and_is_not_blamed(host: HostOf) -> None:
    async with host(a=serve("--without", "resources/templates/list", "--without", "prompts/list")) as running:
        await running.servers.ready()
        await listed(running)
        ours = running.servers["a"].listings
        assert (ours.templates.items, ours.templates.notice) == ([], None)
        assert "listing the prompts failed" in str(ours.prompts.notice)
        assert len(running.catalog.resources("a")) == 4


@pytest.mark.requirement("TOOLS-18")
async def test_a_burst_of_changes_is_one_listing_of_each_kind_that_changed(
    host: HostOf, until: Until, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said five times at once of resources (and so of templates) and of prompts; the tools are left alone."""
    monkeypatch.setattr(offers, "RELIST_PAUSE", 0.01)
    monkeypatch.setattr(offers, "RELIST_DELAY", 0.3)  # a busy machine may take its time over ten lines
    methods = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
    async with host(a=serve("--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        await listed(running)
        assert [len(asked(tmp_path / "wire", method)) for method in methods] == [1, 1, 1, 1]
        await running.run("a", "announce", {"times": 5})
        await until(lambda: len(asked(tmp_path / "wire", "resources/templates/list")) == 2)
        await until(lambda: len(running.catalog.prompts()) == 3 and len(running.catalog.resources()) == 5)
        await running.run("a", "announce", {"times": 5})
        await until(lambda: len(running.catalog.prompts()) == 4 and len(running.catalog.resources()) == 6)
        await until(lambda: len(asked(tmp_path / "wire", "resources/templates/list")) == 3)
    assert [len(asked(tmp_path / "wire", method)) for method in methods] == [1, 3, 3, 3]


@pytest.mark.requirement("CAP-07")
async def test_a_changed_list_is_listed_again_but_not_for_each_word_of_it(
    host: HostOf, until: Until, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "RELIST_PAUSE", 0.2)
    async with host(a=serve("--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        await listed(running)
        for _ in range(10):
            await running.run("a", "announce")
        await until(lambda: len(running.catalog.prompts()) == 12 and len(running.catalog.resources()) == 14)
        assert running.catalog.prompts()[-1].prompt.name == "new-14"
    assert len(asked(tmp_path / "wire", "prompts/list")) <= 4


async def test_offers_go_and_come_back_with_their_server(host: HostOf, until: Until) -> None:
    async with host(a=serve()) as running:
        await running.servers.ready()
        await listed(running)
        running.servers["a"].stop()
        await until(lambda: not running.catalog.resources() and not running.catalog.prompts())
        with pytest.raises(ServerNotReady):
            await running.resources.current("a", CatalogKind.PROMPTS)
        running.servers["a"].start()
        await until(lambda: len(running.catalog.prompts()) == 2 and len(running.catalog.templates()) == 2)
        assert len(running.catalog.resources()) == 4


# Reading and getting.


@pytest.mark.requirement("RES-02", "RES-03", "RES-10", "RES-11", "RES-15")
async def test_a_resource_is_read_as_it_is_called_and_written_down(host: HostOf, tmp_path: Path) -> None:
    audit, wires = tmp_path / "audit", {name: tmp_path / name for name in "ab"}
    servers = {name: serve("--record", wire, start="lazy") for name, wire in wires.items()}
    async with host(**servers, dependencies={"audit_path": audit}) as running:
        (text,) = (await running.resources.read("a", ODD)).contents
        (blob,) = (await running.resources.read("a", "memo:///pixel.png", origin="gpt")).contents
        assert isinstance(text, ResourceContents)
        assert isinstance(blob, ResourceContents)
        assert (text.text, blob.content()[:4]) == ("odd", b"\x89PNG")
        with pytest.raises(ResourceMissing, match="resource not found: memo:///gone"):
            await running.resources.read("a", "memo:///gone")
        with pytest.raises(UnknownName):
            await running.resources.read("x", ODD)
        assert running.approver.questions == []
    assert [params["uri"] for params in asked(wires["a"], "resources/read")] == [
        ODD, "memo:///pixel.png", "memo:///gone",
    ]  # fmt: skip
    assert not wires["b"].exists()
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(r["uri"], r.get("asked_by"), r.get("outcome")) for r in records] == [
        (ODD, "you", None),
        (ODD, None, "done"),
        ("memo:///pixel.png", "gpt", None),
        ("memo:///pixel.png", None, "done"),
        ("memo:///gone", "you", None),
        ("memo:///gone", None, records[-1]["outcome"]),
    ]
    assert records[-1]["outcome"].startswith("error: resource not found")


async def test_where_a_record_is_required_nothing_is_read_without_one(host: HostOf, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire"), policy={"audit": "required"}) as running:
        with pytest.raises(Declined, match="no audit log is kept"):
            await running.resources.read("a", ODD)
    assert asked(tmp_path / "wire", "resources/read") == []


@pytest.mark.requirement("PROMPT-02", "PROMPT-03", "PROMPT-04", "PROMPT-05")
async def test_a_prompt_is_got_once_its_required_arguments_are_there(host: HostOf, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire")) as running:
        with pytest.raises(InvalidArguments, match="language: is required"):
            await running.resources.get_prompt("a", "review", {"framework": "flask"})
        with pytest.raises(UnknownName, match="it has: review, hello"):
            await running.resources.get_prompt("a", "nothing", {})
        result = await running.resources.get_prompt("a", "review", {"language": 5})
        assert [message.role for message in result.messages] == ["user", "assistant"]
        assert result.raw["messages"][0]["content"]["text"] == "review [('language', '5')]"
    assert asked(tmp_path / "wire", "prompts/get") == [{"name": "review", "arguments": {"language": "5"}}]


class Forgetful(StdioTransport):
    """Its server forgets the session once, at each method of ``forgets``."""

    forgets: ClassVar[set[str]] = set()

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        if request.method in self.forgets:
            self.forgets.remove(request.method)
            raise SessionExpired("the server no longer knows this session")
        return await super().request(request, headers)


@pytest.mark.requirement("HTTP-11")
async def test_a_read_is_repeated_in_a_new_session_and_a_call_is_not(tmp_path: Path, until: Until) -> None:
    async def open_transport(config: Config, name: str) -> Transport:
        server = config.servers[name]
        return Forgetful(Command(server.command or "", server.args), TransportLimits(exit_grace=0.1), os.environ)

    config = settings(policy=ALLOW, a=serve("--record", tmp_path / "wire"))
    async with RecordingHost(config, open_transport=open_transport) as running:
        await running.servers.ready()
        watch = await running.resources.subscribe("a", README)
        Forgetful.forgets = {"resources/read", "prompts/get"}
        assert (await running.resources.read("a", ODD)).contents
        assert (await running.resources.get_prompt("a", "hello", {})).messages
        Forgetful.forgets = {"tools/call"}
        call = await running.run("a", "maybe")
        assert isinstance(call.error, SessionExpired)
        await until(lambda: running.servers["a"].ready and watch.state is SubscriptionState.WATCHING)
    assert len(asked(tmp_path / "wire", "initialize")) == 4
    assert len(asked(tmp_path / "wire", "resources/subscribe")) >= 2
    assert asked(tmp_path / "wire", "tools/call") == []


# Completion.


@pytest.mark.requirement("COMP-01", "COMP-03", "COMP-05", "COMP-08")
async def test_the_same_question_is_asked_once(host: HostOf, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire"), b=echo()) as running:
        await running.servers.ready()
        for _ in range(3):
            known = await running.completion.complete(
                "a", PromptRef("review"), "framework", "fl", {"language": "python"}
            )
            assert known == Completion(("flask",), 1)
        assert (await running.completion.complete("a", PromptRef("review"), "framework", "fl")).values == ()
        assert (
            await running.completion.complete("a", TemplateRef("memo:///{folder}/{name}"), "folder", "r")
        ).values == ("rust",)
        assert (running.completion.offered("a"), running.completion.offered("b"), running.completion.offered("x")) == (
            True,
            False,
            False,
        )
        assert await running.completion.suggest("b", PromptRef("review"), "framework", "") == Completion()
    questions = asked(tmp_path / "wire", "completion/complete")
    assert [each.get("context") for each in questions] == [{"arguments": {"language": "python"}}, None, None]


@pytest.mark.requirement("COMP-04", "COMP-07", "COMP-08", "PROMPT-09")
async def test_only_the_last_of_fast_typed_texts_gets_suggestions(host: HostOf, tmp_path: Path) -> None:
    async with host(a=serve("--record", tmp_path / "wire")) as running:
        await running.servers.ready()
        typed = [running.completion.suggest("a", PromptRef("review"), "language", "rust"[:end]) for end in range(5)]
        other = running.completion.suggest("a", PromptRef("review"), "framework", "")
        *superseded, last, beside = await asyncio.gather(*typed, other)
        assert superseded == [None] * 4
        assert (last, beside) == (Completion(("rust",), 1), Completion((), 0))
    values = [params["argument"]["value"] for params in asked(tmp_path / "wire", "completion/complete")]
    assert sorted(values) == ["", "rust"]


async def test_an_answer_on_its_way_is_dropped_when_somebody_types_on(
    host: HostOf, until: Until, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "DEBOUNCE", 0.0)
    silent = ("--record", tmp_path / "wire", "--without", "completion/complete", "--unknown", "silent")
    async with host(a=serve(*silent, protocol="legacy")) as running:  # it does not answer the other era's probe
        await running.servers.ready()
        first = asyncio.create_task(running.completion.suggest("a", PromptRef("review"), "language", "p"))
        await until(lambda: asked(tmp_path / "wire", "completion/complete"))
        second = asyncio.create_task(running.completion.suggest("a", PromptRef("review"), "language", "py"))
        assert await first is None
        second.cancel()
        await asyncio.wait([second])
        await until(lambda: len(asked(tmp_path / "wire", "notifications/cancelled")) >= 1)


# Tasks.


@pytest.mark.requirement("TASK-02", "TASK-06", "TASK-09")
async def test_a_tool_that_must_run_as_a_task_is_one_call_like_any_other(host: HostOf, tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with host(a=serve(), policy=ALLOW, dependencies={"audit_path": audit}) as running:
        await running.servers.ready()
        call = await running.run("a", "research", {"polls": 3})
        assert (call.state, call.doing) == (CallState.DONE, "done")
        assert call.task is not None
        assert (call.task.status, call.task.task_id) == ("completed", "task-1")
        assert call.progress is not None
        assert call.progress.progress == 0
        assert call.outcome is not None
        assert call.outcome.raw["content"][0]["text"] == "found"
        tasks = await running.tasks.listed("a")
        assert [(task.task_id, task.ended) for task in tasks.items] == [("task-1", True)]
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [record["status"] for record in records if record["event"] == "task"] == ["working", "completed"]


@pytest.mark.requirement("TASK-01", "TASK-02", "TASK-08")
@pytest.mark.parametrize(
    ("options", "tool", "as_task", "is_task"),
    [
        ((), "maybe", False, False),
        ((), "maybe", True, True),
        ((), "echo", True, False),
        ((), "research", False, True),
        (("--no-tasks",), "maybe", True, False),
        (("--no-tasks",), "research", True, False),
        (("--protocol", "2025-06-18"), "maybe", True, False),
    ],
)
async def test_a_tool_that_may_run_as_a_task_does_so_where_that_is_wanted(
    host: HostOf, tmp_path: Path, options: tuple[str, ...], tool: str, as_task: bool, is_task: bool
) -> None:
    async with host(a=serve("--record", tmp_path / "wire", *options), policy=ALLOW) as running:
        await running.servers.ready()
        call = await running.run("a", tool, {"text": "x"} if tool == "echo" else {}, as_task=as_task)
        refused = tool == "research" and not is_task  # by the server: we did not offer what it needs
        assert call.state is (CallState.ERROR if refused else CallState.DONE)
        assert (call.task is not None) is is_task
    (sent,) = asked(tmp_path / "wire", "tools/call")
    assert ("task" in sent) is is_task
    assert "tasks" not in asked(tmp_path / "wire", "initialize")[0]["capabilities"]


@pytest.mark.requirement("CANC-09", "TASK-09")
async def test_tasks_are_cancelled_with_their_call_or_by_id(host: HostOf, until: Until, tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    served = serve("--record", tmp_path / "wire")
    async with host(a=served, policy=ALLOW, dependencies={"audit_path": audit}) as running:
        await running.servers.ready()
        call = running.tool_calls.call("a", "research", {"polls": 1, "interval": 60_000})
        await until(lambda: call.task)
        assert call.doing == "running as a task, working: 1 to go"
        call.cancel()
        await running.end_of(call)
        assert call.state is CallState.CANCELLED
        await until(lambda: asked(tmp_path / "wire", "tasks/cancel"))
        await running.tasks.cancel("a", "task-1")
        stopped = await running.run("a", "research", {"polls": 1, "status": "cancelled"})
        assert stopped.state is CallState.ERROR
        assert "the server cancelled the task: 0 to go" in str(stopped.error)
    assert asked(tmp_path / "wire", "tasks/cancel") == [{"taskId": "task-1"}] * 2
    assert asked(tmp_path / "wire", "notifications/cancelled") == []
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["task"], each["status"]) for each in records if each["event"] == "task"] == [
        ("task-1", "working"), ("task-1", "cancel"), ("task-1", "cancel"), ("task-2", "working"),
        ("task-2", "cancelled"),
    ]  # fmt: skip
