"""The changes between two surfaces: what is found, how heavy it is, and in which words."""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import RULES, compare_surfaces, counted, findings_text, masked
from mcphost.host.comparison.lock_file import locked_server, surface_of_lock
from mcphost.host.comparison.surface import Surface, surface, surface_of_recording
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession

LOG: dict[str, Any] = {
    "name": "git_log",
    "title": "Log",
    "description": "Show the commit logs.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "repo_path": {"type": "string", "description": "Where."},
            "max_count": {"type": "integer", "maximum": 100, "default": 10},
        },
        "required": ["repo_path"],
    },
    "outputSchema": {"type": "object", "properties": {"commits": {"type": "array"}}, "required": ["commits"]},
    "annotations": {"title": "Log", "readOnlyHint": True, "openWorldHint": False},
    "icons": [{"src": "https://example.com/a.png"}],
    "_meta": {"team": "a"},
}
ADD: dict[str, Any] = {
    "name": "git_add",
    "description": "Add contents of files to the staging area.",
    "inputSchema": {"type": "object", "properties": {"files": {"type": "array", "items": {"type": "string"}}}},
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    "execution": {"taskSupport": "optional"},
}
PROMPT = {"name": "review", "description": "Review.", "arguments": [{"name": "change", "required": True}]}
RESOURCE = {"uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 3}
TEMPLATE = {"uriTemplate": "file:///{path}", "name": "files"}
OFFERED = {
    CatalogKind.TOOLS: [LOG, ADD],
    CatalogKind.RESOURCES: [RESOURCE],
    CatalogKind.TEMPLATES: [TEMPLATE],
    CatalogKind.PROMPTS: [PROMPT],
}
SERVER: dict[str, Any] = {
    "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "experimental": {"x": {"level": 1}}},
    "instructions": "Be careful.",
    "server_info": {"name": "mcp-git", "version": "1.0"},
    "revision": "2025-11-25",
    "identity": "uvx mcp-server-git",
}


def made(**more: Any) -> Surface:
    return surface("git", entry="git", **{**SERVER, "offered": OFFERED, **more})


def with_tool(place: str, value: Any, tool: Mapping[str, Any] = LOG) -> Surface:
    """The surface with one member of a tool changed; None: removed."""
    changed = deepcopy(dict(tool))
    inner, *steps = changed, *place.split("/")
    for step in steps[:-1]:
        inner = inner[step]
    if value is None:
        del inner[steps[-1]]
    else:
        inner[steps[-1]] = value
    tools = [changed if each is tool else each for each in OFFERED[CatalogKind.TOOLS]]
    return made(offered={**OFFERED, CatalogKind.TOOLS: tools})


def without(kind: CatalogKind) -> Surface:
    return made(offered={**OFFERED, kind: OFFERED[kind][1:]})


def with_item(kind: CatalogKind, item: Mapping[str, Any]) -> Surface:
    return made(offered={**OFFERED, kind: [item]})


# The changed surface, the severity and the words; the severity from a lock without whole definitions, if another.
CHANGES: dict[str, tuple[Surface, str, str, str]] = {
    "argument": (
        with_tool("inputSchema/required", ["repo_path", "max_count"]), "breaking",
        "git_log: argument max_count is now required", "",
    ),
    "bound": (
        with_tool("inputSchema/properties/max_count/maximum", 5), "breaking",
        "git_log: argument max_count took at most 100, and takes at most 5 now", "review",
    ),
    "read-only": (
        with_tool("annotations/readOnlyHint", None), "breaking", "git_log no longer says that it is read-only", "",
    ),
    "closed world": (
        with_tool("annotations/openWorldHint", True), "breaking",
        "git_log no longer says that it keeps to a closed world", "",
    ),
    "destructive": (
        with_tool("annotations/destructiveHint", True, ADD), "breaking",
        "git_add no longer says that it destroys nothing", "",
    ),
    "idempotent": (
        with_tool("annotations/idempotentHint", None, ADD), "breaking",
        "git_add no longer says that it can be repeated without further effect", "",
    ),
    "a new claim": (
        with_tool("annotations/readOnlyHint", True, ADD), "review", "git_add now says that it is read-only", "",
    ),
    "a claim by default": (
        with_tool("annotations/readOnlyHint", None, ADD), "note",
        "git_add: readOnlyHint is now left to its default, and means the same", "",
    ),
    "no claims": (
        with_tool("annotations/title", "The log"), "review", "git_log: its annotation title changed", "",
    ),
    "description": (with_tool("description", "Run it first."), "review", "git_log: its description changed", ""),
    "no title": (with_tool("title", None), "review", "git_log: its title is gone", ""),
    "no result": (with_tool("outputSchema", None), "breaking", "git_log: it no longer describes its result", ""),
    "result": (
        with_tool("outputSchema/required", []), "breaking",
        "git_log: result member commits no longer always comes", "review",
    ),
    "icons": (with_tool("icons", []), "note", "git_log: its icons changed", ""),
    "meta": (with_tool("_meta/team", "b"), "review", "git_log: its _meta team changed", ""),
    "unknown": (with_tool("flavour", "b"), "review", "git_log: its flavour is new", ""),
    "task": (
        with_tool("execution/taskSupport", "required", ADD), "breaking",
        "git_add: it can be called only as a task now", "review",
    ),
    "tool gone": (without(CatalogKind.TOOLS), "breaking", "git_log: the tool is gone", ""),
    "prompt gone": (without(CatalogKind.PROMPTS), "breaking", "review: the prompt is gone", ""),
    "prompt": (
        with_item(CatalogKind.PROMPTS, {**PROMPT, "arguments": [{"name": "change"}]}), "note",
        "review: argument change is no longer required", "",
    ),
    "words of a prompt": (
        with_item(
            CatalogKind.PROMPTS, {**PROMPT, "arguments": [{"name": "change", "required": True, "description": "x"}]}
        ),
        "review", "review: the description of argument change changed", "",
    ),
    "resource": (
        with_item(CatalogKind.RESOURCES, {**RESOURCE, "mimeType": "text/html"}), "review",
        "file:///a: its mimeType changed", "",
    ),
    "size": (with_item(CatalogKind.RESOURCES, {**RESOURCE, "size": 4}), "note", "file:///a: its size changed", ""),
    "template": (
        with_item(CatalogKind.TEMPLATES, {**TEMPLATE, "name": "x"}), "review", "file:///{path}: its name changed", "",
    ),
    "instructions": (made(instructions="Be quick."), "review", "the server's instructions to models changed", ""),
    "version": (
        made(server_info={"name": "mcp-git", "version": "2.0"}), "note",
        "the server's version was 1.0, and is 2.0 now", "",
    ),
    "name": (
        made(server_info={"name": "x", "version": "1.0"}), "review",
        "the server called itself mcp-git, and calls itself x now", "",
    ),
    "revision": (
        made(revision="2025-06-18"), "note", "the protocol revision was 2025-11-25, and is 2025-06-18 now", "",
    ),
    "identity": (made(identity="npx other"), "review", "the server's command or address changed", ""),
    "capability": (
        made(capabilities={"tools": {"listChanged": True}, "experimental": {"x": {"level": 1}}}), "breaking",
        "the server no longer declares prompts", "",
    ),
    "announcements": (
        made(capabilities={**SERVER["capabilities"], "tools": {}}), "note",
        "the server no longer declares tools.listChanged", "",
    ),
    "level": (
        made(capabilities={**SERVER["capabilities"], "experimental": {"x": {"level": 2}}}), "review",
        "the server's capability experimental.x.level was 1, and is 2 now", "",
    ),
}  # fmt: skip


def in_lock(found: Surface) -> Surface:
    return surface_of_lock("git", locked_server(found, str, resources=True))


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_one_finding_in_words(name: str) -> None:
    after, severity, words, _ = CHANGES[name]
    (found,) = compare_surfaces(made(), after)
    assert (found.severity.value, found.words) == (severity, words)
    assert found.rule in RULES


@pytest.mark.parametrize("name", CHANGES)
def test_a_plain_lock_finds_the_same_changes(name: str) -> None:
    after, severity, _, from_lock = CHANGES[name]
    (found,) = compare_surfaces(in_lock(made()), after)
    assert found.severity.value == (from_lock or severity)


def test_a_claim_to_be_read_only_says_all_about_effects() -> None:
    claims = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    sides = with_tool("annotations", {}, ADD), with_tool("annotations", claims, ADD)
    assert [each.words for each in compare_surfaces(*sides)] == ["git_add now says that it is read-only"]
    found = compare_surfaces(*reversed(sides))
    assert [each.words for each in found] == ["git_add no longer says that it is read-only"]


def test_that_a_tool_runs_no_tasks_goes_without_saying() -> None:
    found = compare_surfaces(made(), with_tool("execution", {"taskSupport": "forbidden"}))
    assert [each.severity.value for each in found] == ["note"]


def test_many_items_that_are_gone_share_a_line() -> None:
    resources = [{"uri": f"file:///{number:02}", "name": "x"} for number in range(20)]
    found = compare_surfaces(
        made(offered={CatalogKind.RESOURCES: resources}), made(offered={CatalogKind.RESOURCES: []})
    )
    assert len(found) == 20
    named = ", ".join(f"file:///{number:02}" for number in range(12))
    assert findings_text(found) == f"resources\n  breaking  20 are gone: {named} and 8 more\n"


def test_new_items_are_power_or_a_choice() -> None:
    tools = {**OFFERED, CatalogKind.TOOLS: [LOG]}
    found = compare_surfaces(made(offered=tools), made())
    assert [(each.severity.value, each.words) for each in found] == [("review", "git_add: a new tool")]
    found = compare_surfaces(without(CatalogKind.PROMPTS), made())
    assert [(each.severity.value, each.words) for each in found] == [("note", "review: a new prompt")]


@pytest.mark.parametrize("change", [lambda one: one, in_lock])
def test_a_renamed_tool_is_new_and_looks_like_the_one_that_is_gone(change: Any) -> None:
    renamed = made(offered={**OFFERED, CatalogKind.TOOLS: [{**LOG, "name": "git_log2"}, ADD]})
    assert [each.words for each in compare_surfaces(change(made()), renamed)] == [
        "git_log: the tool is gone",
        "git_log2: a new tool; it looks like git_log, which is gone",
    ]


@pytest.mark.parametrize("seeds", [range(50), pytest.param(range(50, 1000), marks=pytest.mark.slow)])
def test_a_shuffled_listing_is_no_finding(seeds: range) -> None:
    assert [seed for seed in seeds if compare_surfaces(IN_LOCK, shuffled_by(random.Random(seed)))] == []


def shuffled_by(shuffler: random.Random) -> Surface:
    """The surface with its items and their members in another order."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shuffled(value[name]) for name in shuffler.sample([*value], len(value))}
        return value

    offered = {kind: [shuffled(each) for each in shuffler.sample(items, len(items))] for kind, items in OFFERED.items()}
    return made(offered=offered)


IN_LOCK = in_lock(made())

TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
SCHEMAS = st.fixed_dictionaries(
    {"type": TYPES},
    optional={"description": st.text(max_size=3), "maximum": st.integers(0, 9), "minLength": st.integers(0, 9)},
)
TOOLS = st.fixed_dictionaries(
    {
        "name": st.just("t"),
        "inputSchema": st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=3), SCHEMAS, max_size=4)}
        ),
    },
    optional={"description": st.text(max_size=5), "title": st.text(max_size=5)},
)


@settings(max_examples=25, deadline=None)
@given(TOOLS, st.data())
def test_a_change_of_one_field_is_one_finding(tool: dict[str, Any], data: st.DataObject) -> None:
    changed = deepcopy(tool)
    properties = changed["inputSchema"]["properties"]
    kind = data.draw(
        st.sampled_from(["description", "added", *(["removed", "words", "maximum"] if properties else [])])
    )
    name = data.draw(st.sampled_from([*properties])) if properties else ""
    if kind == "description":
        changed["description"], severity = f"{tool.get('description', '')}!", "review"
    elif kind == "added":
        properties["longer"], severity = {"type": "string"}, "note"
    elif kind == "removed":
        severity = "breaking"
        del properties[name]
    elif kind == "words":
        properties[name]["description"], severity = f"{properties[name].get('description', '')}!", "review"
    else:
        severity = "note" if properties[name].get("maximum", 99) < 10 else "breaking"
        properties[name]["maximum"] = 10
    surfaces = (made(offered={CatalogKind.TOOLS: [each]}) for each in (tool, changed))
    assert [each.severity.value for each in compare_surfaces(*surfaces)] == [severity]


def test_another_order_inside_a_definition_is_a_note() -> None:
    both = ["repo_path", "max_count"]
    found = compare_surfaces(with_tool("inputSchema/required", both), with_tool("inputSchema/required", both[::-1]))
    assert [(each.severity.value, each.words) for each in found] == [
        ("note", "git_log: lists in its definition have another order")
    ]


def test_what_nothing_refers_to_is_for_review() -> None:
    found = compare_surfaces(made(), with_tool("inputSchema/$defs", {"x": {"description": "Send it to me."}}))
    assert [each.severity.value for each in found] == ["review"]


def test_another_digest_is_a_change_whatever_else_a_lock_says() -> None:
    tools = IN_LOCK.kinds[CatalogKind.TOOLS]
    edited = {**tools, "git_log": replace(tools["git_log"], digest=f"sha256:{0:064}")}
    found = compare_surfaces(replace(IN_LOCK, kinds={**IN_LOCK.kinds, CatalogKind.TOOLS: edited}), made())
    assert [(each.severity.value, each.item) for each in found] == [("review", "git_log")]


def test_what_only_one_era_has_is_no_change_between_eras() -> None:
    task = with_tool("execution", None, ADD)
    assert compare_surfaces(made(), replace(task, revision="2026-07-28")) == []


def test_a_trace_in_the_meta_of_a_tool_is_no_change() -> None:
    assert compare_surfaces(made(), with_tool("_meta/traceparent", "00-1")) == []


def test_what_a_side_does_not_know_is_not_compared() -> None:
    lock = surface_of_lock("git", locked_server(made(), str, resources=False))
    assert compare_surfaces(lock, without(CatalogKind.RESOURCES)) == []


def test_other_servers_may_have_other_commands() -> None:
    assert compare_surfaces(replace(made(), entry="other"), made(identity="x")) == []


def test_a_recording_has_the_surface_of_its_server() -> None:
    lists = {"tools/list": ("tools", [LOG, ADD]), "prompts/list": ("prompts", [PROMPT])}
    exchanges = tuple(RecordedExchange(method, {}, result={key: items}) for method, (key, items) in lists.items())
    said = {**SERVER, "serverInfo": SERVER["server_info"]}
    session = RecordedSession("git", revision="2025-11-25", introduction=said, exchanges=exchanges)
    found = surface_of_recording(session, "git", "uvx mcp-server-git")
    assert compare_surfaces(found, made()) == []
    assert CatalogKind.RESOURCES not in found.kinds


def test_findings_are_listed_by_item_and_severity() -> None:
    changed = with_tool("inputSchema/properties", {"repo_path": {"type": "string", "description": "x"}})
    after = replace(changed, version="2.0")
    found = compare_surfaces(made(), after)
    assert counted(found) == "1 breaking, 1 for review, 1 to note"
    assert findings_text(found) == (
        "server\n"
        "  note      the server's version was 1.0, and is 2.0 now\n"
        "tool git_log\n"
        "  breaking  argument max_count is gone\n"
        "  review    the description of argument repo_path changed\n"
        "            before  Where.\n"
        "            now     x\n"
    )


def test_a_secret_in_a_definition_is_in_no_finding() -> None:
    text, name = with_tool("description", "The key is hunter2."), with_tool("_meta", {"x": {"hunter2": 1}})
    for found in (*compare_surfaces(made(), text), *compare_surfaces(made(), name)):
        assert "hunter2" not in str(masked(found, lambda text: text.replace("hunter2", "•••")).as_object())


def test_hostile_names_make_no_sentences_of_their_own() -> None:
    hostile = made(offered={CatalogKind.TOOLS: [{"name": "x\n  breaking  all is well\x1b[2J\u202e"}]})
    assert all(each.words.isprintable() for each in compare_surfaces(made(), hostile))
    assert len(findings_text(compare_surfaces(made(offered={CatalogKind.TOOLS: []}), hostile)).splitlines()) == 2


def test_a_hostile_revision_is_safe_in_a_sentence() -> None:
    assert all(each.words.isprintable() for each in compare_surfaces(made(), made(revision="x\n::error::y\x1b[2J")))
