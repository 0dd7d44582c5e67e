"""Rules about how a session begins and ends: the handshake, versions, discovery, and the end of a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.host.server_rules.message_rules import server_requests
from mcphost.host.server_rules.outcomes import (
    Rule,
    answered,
    quoted,
    with_code,
    with_result,
    with_status,
)
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, Unjudged
from mcphost.json_values import as_dict, as_list
from mcphost.protocol.lifecycle.revisions import (
    ASKS_FOR,
    HANDSHAKE_REVISIONS,
    META_PREFIX,
    find_revision,
)


def _opened(seen: Sighting) -> Mapping[str, Any]:
    return seen.exchange("initialize").result or {}


def _members(seen: Sighting) -> Iterator[str]:
    missing = [name for name in ("protocolVersion", "capabilities", "serverInfo") if name not in _opened(seen)]
    yield from (f"it has no {name}" for name in missing)


def _implementation(seen: Sighting) -> Iterator[str]:
    info = _opened(seen).get("serverInfo", {"name": "", "version": ""})
    for name in ("name", "version"):
        if not isinstance(as_dict(info).get(name), str):
            yield f"serverInfo.{name} is {quoted(as_dict(info).get(name))}"


def _strings(*names: str, probe: str) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        result = seen.exchange(probe).result or {}
        for name in names:
            if not isinstance(result.get(name, ""), str):
                yield f"{name} is {quoted(result[name])}"

    return rule


def _early_requests(seen: Sighting) -> Iterator[str]:
    for probe in ("initialize", "early-ping"):
        for message in seen.exchange(probe).messages:
            if message.is_request and message.object.get("method") != "ping" and not message.problem:
                yield f"it requests {quoted(message.object.get('method'))}"


def _version(exchange: ProbeExchange) -> object:
    return (exchange.result or {}).get("protocolVersion")


def _unchanged(seen: Sighting) -> Iterator[str]:
    """A revision that the server offered is one that it supports."""
    exchange = answered(seen, "initialize-offered")
    asked = as_dict(exchange.sent.get("params")).get("protocolVersion")
    if _version(exchange) != asked:
        yield f"asked for {asked}, which it offered before, it answered {quoted(_version(exchange))}"


def _another(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("initialize-unknown")
    outcome = exchange.outcome()
    asked = as_dict(exchange.sent.get("params")).get("protocolVersion")
    if exchange.code in (-32602, -32022):
        raise Unjudged(f"it got {outcome}; the specification's own example is an error, too")
    if exchange.result is None:
        yield f"asked for {asked}, it gave {outcome}"
    elif _version(exchange) == asked:
        yield f"asked for {asked}, which does not exist, it agreed"


def _latest(seen: Sighting) -> Iterator[str]:
    offered = _version(answered(seen, "initialize-unknown"))
    agreed = _version(seen.exchange("initialize"))
    known = {each.version for each in HANDSHAKE_REVISIONS}
    if offered not in known or agreed not in known:
        raise Unjudged("it offered no revision that mcphost knows")
    if str(offered) < str(agreed):
        yield f"it offered {offered}, and supports {agreed}"


def _goes_on(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("initialize-unknown")
    outcome = exchange.outcome()
    if exchange.result is None and exchange.code is None:
        yield f"it got {outcome}"


LIST_CHANGES: Final = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}


def _settled(seen: Sighting) -> Iterator[str]:
    """Nothing was declared by the prober, so that no request but ``ping`` may come."""
    for message in seen.messages():
        method = str(message.object.get("method"))
        if message.is_request and method in ASKS_FOR:
            yield f"it requests {method}, which the client did not declare"
        elif method in LIST_CHANGES and LIST_CHANGES[method] not in seen.capabilities:
            yield f"{method} without the capability {LIST_CHANGES[method]}"
        elif message.is_notification and method == "notifications/message" and "logging" not in seen.capabilities:
            yield "notifications/message without the capability logging"


def _supported(seen: Sighting) -> list[Any]:
    data = as_dict(as_dict(seen.exchange("unknown-version").answer.get("error")).get("data"))
    if seen.exchange("unknown-version").code != -32022:
        raise Unjudged("the server gave no error -32022")
    return as_list(data.get("supported"))


def _lists_supported(seen: Sighting) -> Iterator[str]:
    found = _supported(seen)
    if not found or not all(isinstance(each, str) for each in found):
        yield f"it is {quoted(found)}"
    elif seen.revision.version not in found:
        yield f"it lacks {seen.revision.version}, which the server speaks"


def _repeats_requested(seen: Sighting) -> Iterator[str]:
    _supported(seen)
    exchange = seen.exchange("unknown-version")
    asked = as_dict(as_dict(exchange.sent.get("params")).get("_meta")).get(f"{META_PREFIX}protocolVersion")
    given = as_dict(as_dict(exchange.answer.get("error")).get("data")).get("requested")
    if given != asked:
        yield f"it is {quoted(given)}, and {asked} was asked for"


def _extension_keys(seen: Sighting) -> Iterator[str]:
    for key in as_dict(seen.capabilities.get("extensions")):
        prefix, slash, name = key.rpartition("/")
        if not slash or not prefix or not name:
            yield quoted(key)


def _only_modern(seen: Sighting) -> None:
    if seen.both_eras:
        raise Unjudged("the server speaks the older revisions, too")


def _refused_initialize(seen: Sighting) -> Iterator[str]:
    _only_modern(seen)
    exchange = seen.exchange("initialize-modern")
    outcome = exchange.outcome()
    if exchange.code is None:
        yield f"it got {outcome}"


def _refused_initialize_http(seen: Sighting) -> Iterator[str]:
    _only_modern(seen)
    yield from with_status(400, probe="initialize-modern")(seen)


def _names_versions(seen: Sighting) -> Iterator[str]:
    _only_modern(seen)
    exchange = seen.exchange("initialize-modern")
    if exchange.code is None:
        raise Unjudged(f"initialize got {exchange.outcome()}")
    if seen.revision.version not in exchange.body.decode("utf-8", "replace") + repr(exchange.answer):
        yield f"its error {exchange.code} does not"


def _removed(seen: Sighting) -> Iterator[str]:
    for probe in ("removed-ping", "removed-logging", "removed-subscribe"):
        yield from with_code(-32601, probe=probe)(seen)


def _discovered(seen: Sighting) -> Mapping[str, Any]:
    result = seen.exchange("discover").result
    if result is None:
        raise Unjudged("server/discover got no result")
    return result


def _discovery(seen: Sighting) -> Iterator[str]:
    found = _discovered(seen)
    versions = found.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(each, str) for each in versions):
        yield f"supportedVersions is {quoted(versions)}"
    if not isinstance(found.get("capabilities"), dict):
        yield f"capabilities is {quoted(found.get('capabilities'))}"


def _introduces(seen: Sighting) -> Iterator[str]:
    if f"{META_PREFIX}serverInfo" not in as_dict(_discovered(seen).get("_meta")):
        yield "it does not"


def _accepted(seen: Sighting) -> Iterator[str]:
    """Only revisions that mcphost knows can be asked for."""
    modern = [each for each in as_list(_discovered(seen).get("supportedVersions")) if find_revision(each)]
    if seen.revision.version in modern and seen.exchange("no-client-info").code == -32022:
        yield f"{seen.revision.version} got error -32022"


def _stray_lines(seen: Sighting) -> Iterator[str]:
    """Lines of JSON belong to other rows."""
    for message in seen.messages():
        if not message.is_json or not isinstance(message.value, dict | list | type(None)):
            yield f"a line that is not a message: {quoted(message.data[:200].decode('utf-8', 'replace'))}"


def _torn_lines(seen: Sighting) -> Iterator[str]:
    for message in seen.messages():
        begins, ends = message.data.lstrip()[:1] == b"{", message.data.rstrip()[-1:] == b"}"
        if not message.is_json and b'"jsonrpc"' in message.data and begins != ends:
            yield f"a piece of a message: {quoted(message.data[:200].decode('utf-8', 'replace'))}"


def _exits(seen: Sighting) -> Iterator[str]:
    if seen.exit_seconds is None:
        raise Unjudged("its end was not seen")
    if seen.exit_seconds >= EXIT_SECONDS:
        yield f"it was still running {EXIT_SECONDS:g} s after that"


EXIT_SECONDS: Final = 5.0
"""Seconds that a process has to end by itself; then it gets a signal."""


RULES: Final[Mapping[str, Rule]] = {
    "SLIFE-01": _members,
    "SLIFE-02": _implementation,
    "SLIFE-03": _strings("protocolVersion", "instructions", probe="initialize"),
    "SLIFE-04": _early_requests,
    "SLIFE-05": _unchanged,
    "SLIFE-06": _another,
    "SLIFE-07": _latest,
    "SLIFE-10": _settled,
    "SLIFE-11": _settled,
    "SLIFE-12": _goes_on,
    "SVER-01": with_code(-32022, probe="unknown-version"),
    "SVER-02": _lists_supported,
    "SVER-03": _repeats_requested,
    "SVER-04": _extension_keys,
    "SVER-07": _names_versions,
    "SVER-10": _refused_initialize,
    "SVER-11": _refused_initialize_http,
    "SVER-12": _removed,
    "SDISC-01": with_result("discover"),
    "SDISC-02": with_result("discover"),
    "SDISC-03": _discovery,
    "SDISC-04": _introduces,
    "SDISC-05": _accepted,
    "SDISC-06": _strings("instructions", probe="discover"),
    "SSTDIO-01": _torn_lines,
    "SSTDIO-02": _stray_lines,
    "SSTDIO-04": server_requests,
    "SSTDIO-07": _exits,
    "SSTDIO-08": _exits,
    "SPING-01": with_result("ping"),
    "SPING-02": with_result("early-ping"),
}
