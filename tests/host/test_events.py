from __future__ import annotations

import logging

import pytest

from mcphost.host.events import Event, EventBus, GrantsChanged, Logged, ServerChanged, ToolsChanged


def test_every_observer_sees_every_event_in_order_until_it_stops() -> None:
    bus, first, second = EventBus(), list[Event](), list[Event]()
    stop = bus.observe(first.append)
    bus.observe(second.append)
    bus.publish(Logged())
    bus.publish(ServerChanged("a"))
    stop()
    stop()
    bus.publish(GrantsChanged())
    assert first == [Logged(), ServerChanged("a")]
    assert second == [Logged(), ServerChanged("a"), GrantsChanged()]


def test_an_observer_of_some_kinds_sees_no_others() -> None:
    bus, seen = EventBus(), list[Event]()
    stop = bus.observe(seen.append, ServerChanged, GrantsChanged)
    for event in (Logged(), ServerChanged("a"), ToolsChanged("a"), GrantsChanged()):
        bus.publish(event)
    stop()
    bus.publish(GrantsChanged())
    assert seen == [ServerChanged("a"), GrantsChanged()]


def test_an_observer_that_fails_is_reported_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus, seen = EventBus(), list[Event]()

    def fails(event: Event) -> None:
        raise ValueError("mine")

    bus.observe(fails)
    bus.observe(seen.append)
    with caplog.at_level(logging.ERROR):
        bus.publish(Logged())
    assert seen == [Logged()]
    assert "an observer failed on Logged" in caplog.text


def test_an_observer_may_come_and_go_while_an_event_is_told() -> None:
    bus, seen = EventBus(), list[Event]()

    def once(event: Event) -> None:
        stop()
        bus.observe(seen.append)

    stop = bus.observe(once)
    bus.publish(Logged())
    bus.publish(Logged())
    assert seen == [Logged()]
