"""Rules about every message, whatever it is about: its form, its id, its code and its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcphost.host.server_rules.outcomes import Rule, expect_life, quoted, what, with_code
from mcphost.host.server_rules.sighting import ProbeExchange, ReceivedMessage, Sighting, Unjudged
from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import META_PREFIX

DEFINED: Final = (-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022)
"""The codes of JSON-RPC and of the newest revision."""

ABOUT_HEADERS: Final = ("-header", "foreign-origin")
ABOUT_VERSIONS: Final = ("version", "initialize")

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PREFIX: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/")
_ROW: Final = re.compile(r"[^./]+(?:\.[^./]+)*/")

_Check = Callable[[Mapping[str, Any]], str]
"""Returns what is wrong with a message, as a clause; empty if nothing is."""


def _each(chosen: Callable[[ReceivedMessage], bool], check: _Check) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        yield from (found for each in seen.messages() if chosen(each) and (found := check(each.object)))

    return rule


def _responses(check: _Check) -> Rule:
    return _each(lambda message: message.is_response, check)


def _named(message: Mapping[str, Any]) -> str:
    return f"the answer with id {quoted(message.get('id'))}"


def valid(seen: Sighting) -> Iterator[str]:
    """Over stdio, text that is not JSON belongs to another row."""
    for message in seen.messages():
        if message.problem and (message.is_json or seen.transport != "stdio"):
            yield message.problem


def _requests(check: _Check) -> Rule:
    return _each(lambda message: message.is_request and "result" not in message.object, check)


def _reused(seen: Sighting) -> Iterator[str]:
    used: set[tuple[int, str]] = set()
    for session, message in seen.received:
        if message.is_request and not message.problem:
            key = session, repr(message.object.get("id"))
            if key in used:
                yield f"{quoted(message.object.get('method'))} has the id {quoted(message.object['id'])} again"
            used.add(key)


def _matching(wanted: str) -> Rule:
    """Each answer with ``wanted`` (result or error) has the id of a request."""

    def rule(seen: Sighting) -> Iterator[str]:
        for exchange in seen.all_exchanges():
            for message in exchange.messages:
                given = message.object.get("id")
                unread = given is None and wanted == "error" and _may_lack_id(exchange)
                if not message.is_response or wanted not in message.object or unread:
                    continue
                if type(given) not in (int, str):
                    if given is None or not message.problem:
                        yield f"an answer to {what(exchange)} has the id {quoted(given)}"
                elif (type(given), given) not in seen.sent_ids or _not_yet(given, exchange):
                    yield f"an answer to {what(exchange)} has the id {quoted(given)}, which no request had"

    return rule


def _not_yet(given: object, exchange: ProbeExchange) -> bool:
    """True for the id of a later request: the prober counts."""
    asked = exchange.sent.get("id")
    return isinstance(given, int) and isinstance(asked, int) and given > asked


def _may_lack_id(exchange: ProbeExchange) -> bool:
    """True if an error in it may be about a text without an id, or about the HTTP request."""
    return "id" not in exchange.sent or exchange.status >= 400 or exchange.probe.startswith("after-")


def _either(seen: Sighting) -> Iterator[str]:
    yield from _matching("result")(seen)
    yield from _matching("error")(seen)


def _both(message: Mapping[str, Any]) -> str:
    return f"{_named(message)} has both" if {"result", "error"} <= message.keys() else ""


def _neither(seen: Sighting) -> Iterator[str]:
    for message in seen.messages():
        found = message.object
        if found and "method" not in found and not {"result", "error"} & found.keys():
            yield f"{_named(found)} has neither a result nor an error"


def _object_result(message: Mapping[str, Any]) -> str:
    given = message.get("result", {})
    return "" if isinstance(given, dict) else f"{_named(message)} has a result that is not an object: {quoted(given)}"


def _complete_error(message: Mapping[str, Any]) -> str:
    if "error" not in message or ("result" in message and message["error"] is None):
        return ""
    error = message["error"]
    if not isinstance(error, dict):
        return f"{_named(message)} has an error that is not an object: {quoted(error)}"
    if "code" not in error:
        return f"{_named(message)} has an error without a code"
    return "" if isinstance(error.get("message"), str) else f"{_named(message)} has an error without a message"


def _integer_code(message: Mapping[str, Any]) -> str:
    code = as_dict(message.get("error")).get("code", 0)
    return "" if type(code) is int else f"{_named(message)} has the code {quoted(code)}"


def _notification_id(message: Mapping[str, Any]) -> str:
    method = message.get("method")
    if isinstance(method, str) and method.startswith("notifications/") and message.get("id") is not None:
        return f"{quoted(method)} has an id"
    return ""


def _echoed(seen: Sighting) -> Iterator[str]:
    for exchange in seen.exchanges.values():
        if exchange.sent.get("method", "").startswith("notifications/"):
            for message in exchange.messages:
                if message.is_response and message.object.get("id") is not None:
                    yield f"{exchange.method} got an answer with the id {quoted(message.object['id'])}"


def _bad_text(code: int, probe: str, after: str) -> Rule:
    """A text that is not a request gets this code, if any; the next request is answered."""

    def rule(seen: Sighting) -> Iterator[str]:
        expect_life(seen)
        for exchange in (seen.exchange(probe), seen.exchange(after)):
            for message in exchange.messages:
                given = as_dict(message.object.get("error")).get("code")
                if message.object.get("id", 0) is None and type(given) is int and given != code:
                    yield f"it got error {given}"
        outcome = seen.exchange(after).outcome()
        if seen.exchange(after).response is None:
            yield f"the request after it got {outcome}"

    return rule


def _utf8(seen: Sighting) -> Iterator[str]:
    yield from (each.problem for each in seen.messages() if each.problem.startswith("not UTF-8"))


def codes(seen: Sighting) -> Iterator[tuple[str, int]]:
    """Each error code, with the probe that got it."""
    for exchange in seen.all_exchanges():
        if exchange.code is not None:
            yield exchange.probe, exchange.code


def _undefined(seen: Sighting) -> Iterator[str]:
    for probe, code in codes(seen):
        if -32099 <= code <= -32020 and code not in DEFINED:
            yield f"{probe} got {code}"


def _misused(seen: Sighting) -> Iterator[str]:
    for probe, code in codes(seen):
        about_headers = seen.transport == "http" and any(word in probe for word in (*ABOUT_HEADERS, *ABOUT_VERSIONS))
        about_version = any(word in probe for word in ABOUT_VERSIONS)
        if (code == -32020 and not about_headers) or (code == -32022 and not about_version):
            yield f"{probe} got {code}"


def _removed_codes(seen: Sighting) -> Iterator[str]:
    yield from (f"{probe} got {code}" for probe, code in codes(seen) if code in (-32002, -32042))


def _reserved_codes(seen: Sighting) -> Iterator[str]:
    for probe, code in codes(seen):
        if -32768 <= code < -32099 and code not in DEFINED:
            yield f"{probe} got {code}"


def _result_types(seen: Sighting) -> Iterator[str]:
    for exchange, result in seen.results():
        if exchange.method != "initialize" and not isinstance(result.get("resultType"), str):
            yield f"the result of {exchange.method} has none"


def _known_types(seen: Sighting) -> Iterator[str]:
    extensions = bool(as_dict(seen.capabilities.get("extensions")))
    for exchange, result in seen.results():
        given = result.get("resultType")
        if isinstance(given, str) and given not in ("complete", "input_required") and not (extensions and given):
            yield f"the result of {exchange.method} has {quoted(given)}"


def server_requests(seen: Sighting) -> Iterator[str]:
    for message in seen.messages():
        method = message.object.get("method")
        if message.is_request and not str(method).startswith("notifications/"):
            yield f"it requests {quoted(method)}"


def _capability_shapes(seen: Sighting) -> Iterator[str]:
    opening = seen.exchange("discover" if seen.revision.modern else "initialize").result or {}
    declared = opening.get("capabilities", {})
    if not isinstance(declared, dict):
        yield f"capabilities is {quoted(declared)}"
        return
    for name in ("logging", "completions", "prompts", "resources", "tools", "tasks", "experimental", "extensions"):
        if name in declared and not isinstance(declared[name], dict):
            yield f"{name} is {quoted(declared[name])}"
    for name, flag in (("prompts", "listChanged"), ("resources", "listChanged"), ("resources", "subscribe"),
                       ("tools", "listChanged")):  # fmt: skip
        given = as_dict(declared.get(name)).get(flag, False)
        if not isinstance(given, bool):
            yield f"{name}.{flag} is {quoted(given)}"


def meta_keys(seen: Sighting) -> Iterator[str]:
    """Every key of every ``_meta`` in what the server sent."""
    for message in seen.messages():
        yield from _keys_in(message.object.get("result"))
        yield from _keys_in(message.object.get("params"))


def _keys_in(value: Any) -> Iterator[str]:
    """Of the value itself, and of the objects in the lists that it holds: elsewhere ``_meta`` may be data."""
    if isinstance(value, dict):
        yield from (key for key in as_dict(value.get("_meta")))
        for items in value.values():
            for item in items if isinstance(items, list) else ():
                yield from as_dict(as_dict(item).get("_meta"))


def _bad_prefix(seen: Sighting) -> Iterator[str]:
    for key in dict.fromkeys(meta_keys(seen)):
        prefix = key[: key.rindex("/") + 1] if "/" in key else ""
        if prefix and not _ROW.fullmatch(prefix):
            yield quoted(key)


def _bad_label(seen: Sighting) -> Iterator[str]:
    for key in dict.fromkeys(meta_keys(seen)):
        prefix = key[: key.rindex("/") + 1] if "/" in key else ""
        if prefix and _ROW.fullmatch(prefix) and not _PREFIX.fullmatch(prefix):
            yield quoted(key)


def _bad_name(seen: Sighting) -> Iterator[str]:
    for key in dict.fromkeys(meta_keys(seen)):
        name = key.rpartition("/")[2]
        if name and not (name[0].isascii() and name[0].isalnum() and name[-1].isascii() and name[-1].isalnum()):
            yield quoted(key)


def _unnamed_results(seen: Sighting) -> Iterator[str]:
    for exchange, result in seen.results():
        if exchange.method != "initialize" and f"{META_PREFIX}serverInfo" not in as_dict(result.get("_meta")):
            yield f"the result of {exchange.method}"


def _server_infos(seen: Sighting) -> Iterator[str]:
    for exchange, result in seen.results():
        info = as_dict(result.get("_meta")).get(f"{META_PREFIX}serverInfo")
        if info is not None and not all(isinstance(as_dict(info).get(name), str) for name in ("name", "version")):
            yield f"the result of {exchange.method}: {quoted(info)}"


def _served_anonymous(seen: Sighting) -> Iterator[str]:
    if seen.exchange("discover").result is None:
        raise Unjudged("server/discover is not answered in any case")
    outcome = seen.exchange("no-client-info").outcome()
    if seen.exchange("no-client-info").result is None:
        yield f"server/discover without it got {outcome}"


def _arrays(seen: Sighting) -> Iterator[str]:
    yield from ("it sent an array" for message in seen.messages() if isinstance(message.value, list))


def _versionless(seen: Sighting) -> Iterator[str]:
    if seen.both_eras:
        raise Unjudged("a server of both eras may take such a request as one of an older revision")
    yield from with_code(-32602, probe="no-version")(seen)


def _missing_fields(seen: Sighting) -> Iterator[str]:
    probes = [name for name in ("resource-without-uri", "nameless-prompt") if name in seen.exchanges]
    if not probes:
        raise Unjudged("the server has neither resources nor prompts")
    for probe in probes:
        yield from with_code(-32602, probe=probe)(seen)


RULES: Final[Mapping[str, Rule]] = {
    "SMSG-01": valid,
    "SMSG-02": _requests(
        lambda it: "" if type(it["id"]) in (int, str, type(None)) else f"{quoted(it['method'])} has {quoted(it['id'])}"
    ),
    "SMSG-03": _requests(lambda it: f"{quoted(it['method'])} has the id null" if it["id"] is None else ""),
    "SMSG-04": _reused,
    "SMSG-05": _either,
    "SMSG-06": _matching("result"),
    "SMSG-07": _matching("error"),
    "SMSG-08": _neither,
    "SMSG-09": _responses(_both),
    "SMSG-10": _neither,
    "SMSG-11": _responses(_both),
    "SMSG-12": _responses(_object_result),
    "SMSG-13": _responses(_complete_error),
    "SMSG-14": _responses(_complete_error),
    "SMSG-15": _responses(_complete_error),
    "SMSG-16": _responses(_integer_code),
    "SMSG-18": _each(lambda message: "method" in message.object, _notification_id),
    "SMSG-19": _echoed,
    "SMSG-20": _echoed,
    "SMSG-21": with_code(-32601, probe="unknown-method"),
    "SMSG-22": with_code(-32601, probe="unknown-method"),
    "SMSG-23": _bad_text(-32700, "not-json", "after-not-json"),
    "SMSG-24": _bad_text(-32600, "not-a-request", "after-not-a-request"),
    "SMSG-25": _missing_fields,
    "SMSG-26": _utf8,
    "SMSG-27": _undefined,
    "SMSG-28": _misused,
    "SMSG-30": _removed_codes,
    "SMSG-31": _reserved_codes,
    "SMSG-32": _result_types,
    "SMSG-33": _known_types,
    "SMSG-34": server_requests,
    "SMSG-39": _capability_shapes,
    "SMETA-01": _bad_prefix,
    "SMETA-02": _bad_label,
    "SMETA-03": _bad_name,
    "SMETA-08": _versionless,
    "SMETA-09": with_code(-32602, probe="no-capabilities"),
    "SMETA-11": _served_anonymous,
    "SMETA-17": _unnamed_results,
    "SMETA-18": _server_infos,
    "SBATCH-08": _arrays,
    "SBATCH-09": _arrays,
}
