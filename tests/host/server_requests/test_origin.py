"""For which call a server asks: certain over HTTP, where it asks on the call's own stream; else it is the newest."""

from __future__ import annotations

import time
from typing import Any

from mcphost.config import Config
from mcphost.host.consent.questions import FormQuestion
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.tool_calls.call import CallState
from mcphost.host.traffic.book import TrafficBook
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.host.conftest import settings
from tests.host.connections.web_messages import replies, said, seen
from tests.host.server_requests.pending import NEVER, SCHEMA, AskedHost, Person, asked_host, form
from tests.transports.http.http_connection import QUICK, Echo, Talk, Web

QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}
PARAMS = {"message": "Who?", "requestedSchema": SCHEMA}


async def test_over_http_a_question_belongs_to_the_call_of_its_stream(until: Until) -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        message: dict[str, Any] = talk.visit.message or {}
        if message.get("method") != "tools/call" or message["params"]["name"] != "echo":
            echo(talk)
            return
        talk.begin_events()
        ends = time.monotonic() + 10
        while len(seen(web, "tools/call")) < 2 and time.monotonic() < ends:  # another call is sent after this one
            time.sleep(0.005)
        talk.events({**QUESTION, "params": PARAMS})
        while "q" not in replies(web) and time.monotonic() < ends:
            time.sleep(0.005)
        talk.events(said(message["id"], "right"))
        talk.end_events()

    async def open_transport(config: Config, name: str) -> Transport:
        return HttpTransport(web.url, TransportLimits(), timeouts=QUICK, observer=book.tap(name))

    book = TrafficBook()
    with Web(serve) as web:
        person = Person(NEVER)
        config = settings(a={"url": web.url}, policy={"default": "allow"})
        async with AskedHost(config, person, answers=DIALOG_KINDS, open_transport=open_transport, traffic=book) as host:
            await host.servers.ready()
            asking = host.tool_calls.call("a", "echo", {"text": "x"})
            await until(lambda: seen(web, "tools/call"))
            newest = host.tool_calls.call("a", "sleep", {})
            await until(lambda: person.asked)
            question = person.asked[0]
            assert isinstance(question, FormQuestion)
            assert (question.call, question.tool) == (asking.number, "echo")
            newest.cancel()
            await until(lambda: newest.state.ended)
            assert not person.left  # it was asked for the other one
            asking.cancel()
            await until(lambda: person.left)
            await until(lambda: "q" in replies(web))
            assert replies(web)["q"] == {"action": "cancel"}
            assert calls_of_questions(book) == [asking.number] * 2


def calls_of_questions(book: TrafficBook) -> list[int | None]:
    """The calls to which the traffic counts the server's requests and their answers."""
    return [message.call for message in book.since(0) if message.method == "elicitation/create"]


async def test_over_one_pipe_a_question_is_probably_for_the_newest_call(until: Until) -> None:
    async with asked_host(NEVER, NEVER) as host:
        first = host.ask(form())
        await until(lambda: len(host.person.asked) == 1)
        second = host.ask(form())
        await until(lambda: len(host.person.asked) == 2)
        assert [question.call for question in host.person.asked] == [first.number, second.number]
        second.cancel()
        await until(lambda: second.state is CallState.CANCELLED)
        assert host.person.left == 0  # which of the two it was asked for is not certain
        first.cancel()  # its question came while no other call ran
        await until(lambda: host.person.left == 1)
