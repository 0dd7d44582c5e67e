"""Rules about Streamable HTTP: statuses, headers, sessions and streams."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from mcphost.host.server_rules.outcomes import Rule, answered, expect_life, quoted, what, with_result, with_status
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, Unjudged

EVENTS: Final = "text/event-stream"
TOLD: Final = ("initialized", "cancelled-unknown", "cancelled-malformed")
"""The probes that are notifications."""


def _streams(seen: Sighting) -> Iterator[ProbeExchange]:
    """The streams that answered a request."""
    for exchange in seen.all_exchanges():
        if exchange.media == EVENTS and exchange.status == 200 and exchange.method and exchange.probe != "listen":
            yield exchange


def _foreign(statuses: Callable[[int], bool]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        if not seen.loopback:
            raise Unjudged("which origins are foreign is known of servers on this machine only")
        exchange = seen.exchange("foreign-origin")
        if exchange.status != 403:
            exchange.outcome()
        if not exchange.status:
            raise Unjudged(f"it got {exchange.outcome()}")
        if not statuses(exchange.status):
            yield f"it got HTTP {exchange.status}"

    return rule


def _refused_origin(status: int) -> bool:
    return status >= 400


def _notified(seen: Sighting) -> Iterator[ProbeExchange]:
    found = [seen.exchanges[probe] for probe in TOLD if probe in seen.exchanges]
    yield from (exchange for exchange in found if exchange.status)


def _accepted(seen: Sighting) -> Iterator[str]:
    for exchange in _notified(seen):
        if exchange.status < 300 and exchange.status != 202:
            yield f"{exchange.method} got HTTP {exchange.status}"
        elif exchange.status == 202 and exchange.body.strip():
            yield f"{exchange.method} got a body of {len(exchange.body)} bytes"


def _body_types(seen: Sighting) -> Iterator[str]:
    for exchange in seen.all_exchanges():
        accepted = 200 <= exchange.status < 300 and "id" in exchange.sent
        if accepted and exchange.media not in ("application/json", EVENTS):
            yield f"{what(exchange)} got {quoted(exchange.media) or 'none'}"


def _holds_response(seen: Sighting) -> Iterator[str]:
    for exchange in _streams(seen):
        if exchange.ended and exchange.response is None and "id" in exchange.sent:
            yield f"that of {what(exchange)} ended without it"


def _primed(seen: Sighting) -> Iterator[str]:
    found = [exchange for exchange in _streams(seen) if exchange.probe != "initialize"]
    if not found:
        raise Unjudged("the server answered without event streams")
    for exchange in found[:1]:
        first = re.split(rb"\r\n\r\n|\n\n|\r\r", exchange.body.lstrip(), maxsplit=1)[0].splitlines()
        fields = {line.partition(b":")[0]: line.partition(b":")[2].strip() for line in first}
        if not fields.get(b"id") or fields.get(b"data"):
            yield f"that of {what(exchange)} begins with {quoted(first[0].decode('utf-8', 'replace') if first else '')}"


def _ends(seen: Sighting) -> Iterator[str]:
    for exchange in _streams(seen):
        if not exchange.ended:
            yield f"that of {what(exchange)} stayed open after the response"


def _response_last(seen: Sighting) -> Iterator[str]:
    yield from _ends(seen)
    for exchange in _streams(seen):
        if exchange.response is not None and exchange.messages[-1] is not exchange.response:
            yield f"that of {what(exchange)} goes on after it"


def _unbuffered(seen: Sighting) -> Iterator[str]:
    found = [exchange for exchange in seen.all_exchanges() if exchange.media == EVENTS]
    if not found:
        raise Unjudged("the server answered without event streams")
    for exchange in found:
        if exchange.headers.get("x-accel-buffering", "").lower() != "no":
            yield f"that of {what(exchange)} has {quoted(exchange.headers.get('x-accel-buffering', 'none'))}"


def _get(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("get")
    exchange.outcome()
    if exchange.status != 405 and not (exchange.status == 200 and exchange.media == EVENTS):
        if not exchange.status:
            raise Unjudged(f"GET got {exchange.outcome()}")
        yield f"it got HTTP {exchange.status} {quoted(exchange.media)}".rstrip()


def _event_ids(seen: Sighting) -> Iterator[str]:
    found = Counter(event for exchange in seen.all_exchanges() for event in exchange.event_ids)
    if len(seen.session_ids) > 1:
        first = [exchange for exchange in seen.all_exchanges() if exchange.probe not in _OTHER_SESSIONS]
        found = Counter(event for exchange in first for event in exchange.event_ids)
    yield from (f"{quoted(event)} is there {count} times" for event, count in found.items() if event and count > 1)


_OTHER_SESSIONS: Final = ("initialize-unknown", "initialize-offered", "initialize once more", "initialized again",
                          "after-cancelled", "after-not-json", "after-not-a-request")  # fmt: skip
"""Probes of further sessions, in which ids may begin again."""


def _sessions(seen: Sighting) -> list[str]:
    if not seen.session_ids:
        raise Unjudged("the server has no session ids")
    return seen.session_ids


def _visible(seen: Sighting) -> Iterator[str]:
    yield from (quoted(each) for each in _sessions(seen) if not re.fullmatch(r"[\x21-\x7e]+", each))


def _unguessable(seen: Sighting) -> Iterator[str]:
    found = _sessions(seen)
    if len(found) < 2:
        raise Unjudged("only one session id was seen")
    for one, other in pairwise(found):
        if one == other:
            yield "two sessions have the same id"
        elif one.isdigit() and other.isdigit() and abs(int(one[-18:]) - int(other[-18:])) < 100:
            yield "they count up"


def _needs_session(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("without-session")
    outcome = exchange.outcome()
    if exchange.status < 300:
        raise Unjudged("the server does not require session ids")
    if exchange.status != 400:
        yield f"it got {outcome}"


def _after_the_end(seen: Sighting) -> Iterator[str]:
    if not 200 <= seen.exchange("delete").status < 300:
        raise Unjudged(f"DELETE got HTTP {seen.exchange('delete').status}: clients cannot end sessions")
    yield from with_status(404, probe="after-delete")(seen)


def _assumed(seen: Sighting) -> Iterator[str]:
    expect_life(seen)
    yield from with_result("no-version-header")(seen)


def _only_modern(rule: Rule) -> Rule:
    def only_modern(seen: Sighting) -> Iterator[str]:
        if seen.both_eras:
            raise Unjudged("the server speaks the older revisions, too")
        yield from rule(seen)

    return only_modern


def _rejects_versionless(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("no-version-header")
    outcome = exchange.outcome()
    if exchange.status < 400:
        yield f"it got {outcome}"


def _mismatched_version(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("wrong-version-header")
    outcome = exchange.outcome()
    if seen.both_eras and exchange.status == 400 and exchange.code != _MISMATCH:
        raise Unjudged(f"it got {outcome}; a server of both eras may take it for a request of the older revision")
    yield from with_status(400, probe="wrong-version-header", code=_MISMATCH)(seen)


def _decoded(seen: Sighting) -> Iterator[str]:
    exchange = answered(seen, "encoded-name-header")
    if exchange.code == -32020:
        yield "it got error -32020"


def _no_sessions(seen: Sighting) -> Iterator[str]:
    for exchange in seen.exchanges.values():
        if "mcp-session-id" in exchange.headers:
            yield f"{what(exchange)} got one"
            return
    yield from with_result("session-header")(seen)


def _not_allowed(seen: Sighting) -> Iterator[str]:
    for probe in ("get", "delete"):
        exchange = seen.exchange(probe)
        exchange.outcome()
        if exchange.status != 405:
            yield f"{probe.upper()} got HTTP {exchange.status}"


_MISMATCH: Final = -32020

RULES: Final[Mapping[str, Rule]] = {
    "SMETA-10": with_status(400, probe="no-capabilities"),
    "SHTTP-03": _foreign(_refused_origin),
    "SHTTP-04": _foreign(lambda status: status == 403),
    "SHTTP-07": _accepted,
    "SHTTP-08": _accepted,
    "SHTTP-11": _body_types,
    "SHTTP-12": _holds_response,
    "SHTTP-16": _primed,
    "SHTTP-19": _ends,
    "SHTTP-20": _response_last,
    "SHTTP-23": _unbuffered,
    "SHTTP-01": _get,
    "SGET-01": _get,
    "SRESUME-02": _event_ids,
    "SSESS-02": _unguessable,
    "SSESS-03": _visible,
    "SSESS-04": _needs_session,
    "SSESS-05": _after_the_end,
    "SSESS-08": _unguessable,
    "SHDR-01": _assumed,
    "SHDR-02": with_status(400, probe="bad-version-header"),
    "SHDR-03": _mismatched_version,
    "SHDR-04": with_status(400, probe="unknown-version", code=-32022),
    "SHDR-05": with_status(404, probe="unknown-method", code=-32601),
    "SHDR-07": _only_modern(_rejects_versionless),
    "SHDR-08": with_status(400, probe="no-method-header", code=_MISMATCH),
    "SHDR-09": with_status(400, probe="wrong-method-header", code=_MISMATCH),
    "SHDR-10": with_status(400, probe="no-name-header", code=_MISMATCH),
    "SHDR-11": with_status(400, probe="wrong-name-header", code=_MISMATCH),
    "SHDR-13": _decoded,
    "SHDR-15": with_status(400, probe="method-header-in-capitals", code=_MISMATCH),
    "SHDR-25": _only_modern(_not_allowed),
    "SHDR-26": _only_modern(_no_sessions),
    "SHDR-27": _only_modern(with_result("resuming-header")),
}
