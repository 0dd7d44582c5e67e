"""Single rules, on sightings made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcphost.host.server_rules.judging import judge_row
from mcphost.host.server_rules.requirements import requirements
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, read_message
from mcphost.protocol.lifecycle.revisions import V2024_11_05, V2025_11_25, V2026_07_28, Revision


def seen(
    revision: Revision = V2025_11_25, *exchanges: ProbeExchange, transport: str = "http", **capabilities: Any
) -> Sighting:
    found = Sighting(transport, revision, capabilities, loopback=True)
    for exchange in exchanges:
        found.exchanges[exchange.probe] = exchange
        found.received += [(1, message) for message in exchange.messages]
    return found


def exchange(probe: str, answer: Any = None, method: str = "ping", **more: Any) -> ProbeExchange:
    """A request and its answer; ``answer`` is a result, an error code, or None for none."""
    found = ProbeExchange(probe, {"jsonrpc": "2.0", "id": 1, "method": method}, **more)
    if answer is not None:
        outcome = {"error": {"code": answer, "message": "no"}} if isinstance(answer, int) else {"result": answer}
        found.response = read_message(json.dumps({"jsonrpc": "2.0", "id": 1, **outcome}).encode())
        found.messages.append(found.response)
    return found


def listed(sighting: Sighting, method: str, **result: Any) -> Sighting:
    sighting.pages[method] = [exchange(method, result, method)]
    return sighting


def outcome(row: str, sighting: Sighting) -> str:
    return judge_row(requirements()[row], sighting).outcome


EVENTS = {"content-type": "text/event-stream"}
MISMATCH = "wrong-method-header"

HTTP: tuple[tuple[str, str, Revision, ProbeExchange], ...] = (
    ("SHTTP-04", "failed", V2025_11_25, exchange("foreign-origin", {}, status=200)),
    ("SHTTP-04", "failed", V2025_11_25, exchange("foreign-origin", status=400)),
    ("SHTTP-04", "passed", V2025_11_25, exchange("foreign-origin", status=403)),
    ("SHTTP-03", "passed", V2025_11_25, exchange("foreign-origin", status=400)),
    ("SHTTP-07", "failed", V2025_11_25, exchange("initialized", method="notifications/initialized", status=200)),
    ("SHTTP-07", "passed", V2025_11_25, exchange("initialized", method="notifications/initialized", status=202)),
    ("SHTTP-11", "failed", V2025_11_25, exchange("ping", status=200, headers={"content-type": "text/html"})),
    ("SHTTP-16", "warning", V2025_11_25, exchange("ping", {}, status=200, headers=EVENTS, body=b"data: {}\n\n")),
    ("SHTTP-16", "passed", V2025_11_25, exchange("ping", {}, status=200, headers=EVENTS, body=b"id: 1\ndata:\n\n")),
    ("SHTTP-23", "warning", V2026_07_28, exchange("discover", {}, status=200, headers=EVENTS)),
    ("SGET-01", "failed", V2025_11_25, exchange("get", status=404)),
    ("SGET-01", "passed", V2025_11_25, exchange("get", status=405)),
    ("SGET-01", "skipped", V2025_11_25, exchange("get", status=503)),
    ("SSESS-04", "warning", V2025_11_25, exchange("without-session", -32000, status=404)),
    ("SSESS-04", "skipped", V2025_11_25, exchange("without-session", {}, status=200)),
    ("SHDR-02", "failed", V2025_11_25, exchange("bad-version-header", {}, status=200)),
    ("SHDR-05", "failed", V2026_07_28, exchange("unknown-method", -32601, status=200)),
    ("SHDR-05", "passed", V2026_07_28, exchange("unknown-method", -32601, status=404)),
    ("SHDR-09", "failed", V2026_07_28, exchange(MISMATCH, {}, status=200)),
    ("SHDR-09", "failed", V2026_07_28, exchange(MISMATCH, -32602, status=400)),
    ("SHDR-09", "passed", V2026_07_28, exchange(MISMATCH, -32020, status=400)),
    ("SHDR-09", "skipped", V2026_07_28, exchange(MISMATCH, status=429)),
    ("SMETA-10", "failed", V2026_07_28, exchange("no-capabilities", -32602, status=200)),
)


@pytest.mark.parametrize(("row", "expected", "revision", "given"), HTTP)
def test_an_http_answer_is_judged(row: str, expected: str, revision: Revision, given: ProbeExchange) -> None:
    assert outcome(row, seen(revision, given)) == expected


@pytest.mark.parametrize(
    ("deleted", "after", "expected"), [(200, 404, "passed"), (200, 400, "failed"), (405, 200, "skipped")]
)
def test_a_terminated_session_is_not_found(deleted: int, after: int, expected: str) -> None:
    sighting = seen(V2025_11_25, exchange("delete", status=deleted), exchange("after-delete", -32000, status=after))
    assert outcome("SSESS-05", sighting) == expected


@pytest.mark.parametrize(
    ("ids", "expected"), [(["1", "2"], "failed"), (["a", "a"], "failed"), (["x7", "q2"], "passed")]
)
def test_session_ids_that_count_up_are_predictable(ids: list[str], expected: str) -> None:
    sighting = seen()
    sighting.session_ids = ids
    assert outcome("SSESS-08", sighting) == expected


@pytest.mark.parametrize(
    ("row", "revision", "expected"),
    [("STOOL-14", V2024_11_05, "warning"), ("STOOL-15", V2025_11_25, "warning"), ("STOOL-14", V2025_11_25, "skipped")],
)
def test_a_row_is_judged_only_in_its_revisions(row: str, revision: Revision, expected: str) -> None:
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    assert outcome(row, listed(seen(revision, tools={}), "tools/list", tools=[tool, tool])) == expected


def test_a_row_about_an_undeclared_capability_is_skipped() -> None:
    finding = judge_row(requirements()["STOOL-09"], seen())
    assert (finding.outcome, finding.reason) == ("skipped", "the server does not declare tools")


def test_a_row_without_its_probe_is_skipped_with_the_reason() -> None:
    sighting = seen(V2025_11_25)
    sighting.hung = ["early-ping"]
    finding = judge_row(requirements()["SPING-01"], sighting)
    assert finding.reason == "the probe ping was not sent; the server hung on early-ping"


def test_a_derived_row_that_is_broken_is_a_warning() -> None:
    assert outcome("STOOL-20", seen(V2025_11_25, exchange("unknown-tool", {}), tools={})) == "warning"


def test_a_foreign_text_in_a_finding_is_safe_to_show() -> None:
    tool = {"name": "\x1b[2J\u202eevil", "inputSchema": None}
    finding = judge_row(requirements()["STOOL-09"], listed(seen(tools={}), "tools/list", tools=[tool]))
    assert finding.outcome == "failed"
    assert not {"\x1b", "\u202e"} & {*finding.seen}


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        ({"type": "string", "x-mcp-header": ""}, "SXHDR-01"),
        ({"type": "string", "x-mcp-header": "a b"}, "SXHDR-02"),
        ({"type": "string", "x-mcp-header": "a\n"}, "SXHDR-03"),
        ({"type": "number", "x-mcp-header": "A"}, "SXHDR-05"),
        ({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}, "SXHDR-06"),
        ({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}, "SXHDR-07"),
    ],
)
def test_an_annotation_for_a_header_is_judged(schema: dict[str, Any], row: str) -> None:
    tool = {"name": "a", "inputSchema": {"type": "object", "properties": {"p": schema}}}
    assert outcome(row, listed(seen(V2026_07_28, tools={}), "tools/list", tools=[tool])) == "failed"


ITEMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("SRES-08", "resources/list", {"uri": "a:b"}),
    ("SRES-10", "resources/list", {"uri": "a:b", "name": "a", "mimeType": 7}),
    ("SRES-12", "resources/list", {"uri": "no scheme", "name": "a"}),
    ("SRES-20", "resources/list", {"uri": "a:b", "name": "a", "annotations": {"priority": 2}}),
    ("SRES-21", "resources/list", {"uri": "a:b", "name": "a", "annotations": {"lastModified": "yesterday"}}),
    ("SRES-09", "resources/templates/list", {"name": "a"}),
    ("SRES-14", "resources/templates/list", {"uriTemplate": "a:{b", "name": "a"}),
    ("SPROM-08", "prompts/list", {"name": "a", "arguments": [{}]}),
    ("SPROM-09", "prompts/list", {"name": "a", "arguments": [{"name": "b", "required": "yes"}]}),
    ("SICON-02", "prompts/list", {"name": "a", "icons": [{"src": "file:///a.png"}]}),
)


@pytest.mark.parametrize(("row", "method", "item"), ITEMS)
def test_an_item_of_a_list_is_judged(row: str, method: str, item: dict[str, Any]) -> None:
    member = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}.get(method, "prompts")
    sighting = listed(seen(resources={}, prompts={}), method, **{member: [item]})
    assert outcome(row, sighting) in ("failed", "warning")


CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("STOOL-26", "failed", {}),
    ("STOOL-26", "passed", {"content": []}),
    ("STOOL-27", "failed", {"content": [], "isError": "no"}),
    ("STOOL-29", "failed", {"content": [{"type": "image", "data": "§", "mimeType": "image/png"}]}),
    ("STOOL-31", "failed", {"content": [{"type": "resource_link", "uri": "a:b"}]}),
    ("STOOL-35", "failed", {"content": [{"type": "video"}]}),
    ("STOOL-37", "failed", {"content": [], "structuredContent": [1]}),
    ("STOOL-39", "failed", {"content": [], "structuredContent": {"sum": "three"}}),
    ("STOOL-39", "passed", {"content": [], "structuredContent": {"sum": 3}}),
)


@pytest.mark.parametrize(("row", "expected", "result"), CALLS)
def test_the_result_of_a_named_call_is_judged(row: str, expected: str, result: dict[str, Any]) -> None:
    output = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    tool = {"name": "add", "inputSchema": {"type": "object"}, "outputSchema": output}
    sighting = listed(seen(tools={}), "tools/list", tools=[tool])
    call = exchange("call", result, "tools/call")
    call.sent = {**call.sent, "params": {"name": "add"}}
    sighting.calls = [call]
    assert outcome(row, sighting) == expected


def test_a_row_about_results_needs_a_call() -> None:
    assert judge_row(requirements()["STOOL-26"], seen(tools={})).reason == "needs a call; name a tool with --call"
    assert judge_row(requirements()["STOOL-42"], seen(tools={})).reason == "not judged by mcphost"


@pytest.mark.parametrize(
    ("key", "row"), [("a b/c", ""), ("-a/c", "SMETA-02"), ("a..b/c", "SMETA-01"), ("a.b/-c", "SMETA-03"), ("a.b/c", "")]
)
def test_keys_of_metadata_are_judged_by_prefix_and_name(key: str, row: str) -> None:
    sighting = seen(V2025_11_25, exchange("ping", {"_meta": {key: 1}}))
    broken = {each for each in ("SMETA-01", "SMETA-02", "SMETA-03") if outcome(each, sighting) == "failed"}
    assert broken == ({row} if row else {"SMETA-02"} if " " in key else set())


def test_a_tool_list_that_differs_between_connections_is_named() -> None:
    one, other = ({"name": name, "inputSchema": {"type": "object"}} for name in "ab")
    again = exchange("again-tools/list", {"tools": [other]}, "tools/list")
    assert outcome("STOOL-05", listed(seen(V2026_07_28, again, tools={}), "tools/list", tools=[one])) == "failed"


def test_a_subscription_needs_its_acknowledgment_first() -> None:
    listen = exchange("listen", method="subscriptions/listen")
    notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {}}}
    listen.messages = [read_message(json.dumps(notice).encode())]
    assert outcome("SSUB-02", seen(V2026_07_28, listen)) == "failed"
    assert outcome("SSUB-06", seen(V2026_07_28, listen)) == "failed"
