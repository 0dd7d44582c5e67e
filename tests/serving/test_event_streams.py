"""The events of an HTTP session: kept within bounds, sent once, and replayed."""

from __future__ import annotations

import asyncio

import pytest

from mcphost.serving import event_streams
from mcphost.serving.event_streams import KEPT_EVENTS, KEPT_STREAMS, EventStore, EventStream

server = pytest.mark.server_requirement


async def sent(stream: EventStream, after: int = 0) -> list[bytes]:
    """The messages that a connection gets now."""
    connection, found = stream.connect(), list[bytes]()
    while stream.ended or any(event.number > after for event in stream.events):
        event = await stream.next(after, connection)
        if event is None:
            break
        after = event.number
        found.append(event.data)
        stream.was_sent(event)
    return found


@server("SRESUME-02", "SRESUME-03", "SRESUME-05")
async def test_an_event_id_names_its_stream_and_place() -> None:
    store = EventStore()
    first, second = store.open(), store.open()
    for number in range(3):
        first.put(b"a%d" % number, answers=False)
        second.put(b"b%d" % number, answers=False)
    ids = [stream.event_id(event) for stream in (first, second) for event in stream.events]
    ids += [stream.first_id(0, connection) for stream in (first, second) for connection in (1, 2)]
    assert len({*ids}) == 10
    found = store.find(ids[3])
    assert found is not None
    assert await sent(*found) == [b"b1", b"b2"]


@pytest.mark.parametrize(
    "event_id", ["", "1", "1.", "9.1", "-1.1", "1.1.1.1", "x.y", "1.1\n", "٣.١", "9" * 30 + ".1", "1.1; drop"]
)
def test_a_forged_event_id_finds_nothing(event_id: str) -> None:
    store = EventStore()
    store.open().put(b"a", answers=False)
    assert store.find(event_id) is None


async def test_what_a_connection_was_sent_is_there_for_one_that_resumes() -> None:
    stream = EventStore().open()
    stream.put(b"a", answers=False)
    stream.put(b"b", answers=True)
    stream.put(b"late", answers=False)
    assert await sent(stream) == [b"a", b"b"]
    assert await sent(stream, stream.events[0].number) == [b"b"]


async def test_a_new_connection_ends_the_one_before() -> None:
    stream = EventStore().open()
    waiting = asyncio.create_task(stream.next(0, stream.connect()))
    await asyncio.sleep(0)
    newer = stream.connect()
    assert await asyncio.wait_for(waiting, 10) is None
    stream.put(b"a", answers=False)
    event = await stream.next(0, newer)
    assert event is not None
    assert event.data == b"a"


def test_events_are_bounded_by_number() -> None:
    store = EventStore()
    old, new = store.open(), store.open()
    for number in range(KEPT_EVENTS):
        old.put(b"%d" % number, answers=False)
    new.put(b"new", answers=False)
    assert (len(old.events), old.events[0].data, len(new.events)) == (KEPT_EVENTS - 1, b"1", 1)


def test_events_are_bounded_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "KEPT_BYTES", 100)
    stream = EventStore().open()
    for size in (60, 60, 500):
        stream.put(b"x" * size, answers=False)
        assert [len(event.data) for event in stream.events] == [size]


async def test_a_stream_without_replay_ends_when_its_reader_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "KEPT_BYTES", 100)
    stream = EventStore(replays=False).open()
    stream.put(b"x" * 60, answers=False)
    assert await sent(stream) == [b"x" * 60]
    assert not stream.events
    stream.put(b"x" * 60, answers=False)
    stream.put(b"x" * 60, answers=False)
    assert await stream.next(0, stream.connect()) is None


def test_ended_streams_are_bounded() -> None:
    store = EventStore()
    streams = [store.open() for _ in range(KEPT_STREAMS + 5)]
    assert store.find("1.0") is not None
    for stream in streams[1:]:
        stream.put(b"a", answers=True)
    store.open()
    kept = [stream for stream in streams if store.find(f"{stream.number}.0") is not None]
    assert kept == [streams[0], *streams[-KEPT_STREAMS + 1 :]]
