"""Names of the items of several servers: within the limits of agents, stable, and found again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.config.fields import ALIAS
from mcphost.host.endpoint.names import NAME_CHARACTERS, ExposedNames, ExposedUris, Origin, aliases
from mcphost.protocol.uri_templates import UriTemplate

SERVERS = st.text("abAB12_.-", min_size=1, max_size=64).filter(lambda name: name[0] != "-")
TOOLS = st.text("ab_.- é/" + "\N{GRINNING FACE}", min_size=1, max_size=80)
URIS = st.one_of(
    st.sampled_from(["file:///a", "ui://a/b", "skill://a/SKILL.md", "mcphost://results/1", "mcphost+a:b:c", "", "a:"]),
    st.builds("{}{}".format, st.sampled_from(["mcphost+a:", "mcphost+b:", "ui://mcphost+a/", "file:///"]), st.text()),
    st.text(),
)
TEMPLATES = st.sampled_from(["file:///{path}", "file:///a/{x}", "{+uri}", "ui://a/{x}", "https://{host}/", "a:{?q*}"])
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def exposed(servers: Sequence[str], items: Sequence[Origin]) -> ExposedNames:
    return ExposedNames(aliases(dict.fromkeys(servers)), items)


def test_the_tools_of_one_server_keep_their_names() -> None:
    names = exposed(["a server.with a long name"], [("a server.with a long name", "any name.at/all" * 9)])
    assert names.of("a server.with a long name", "any name.at/all" * 9) == "any name.at/all" * 9


def test_names_of_several_servers_start_with_the_server() -> None:
    names = exposed(["git", "docs"], [("git", "log"), ("docs", "log")])
    assert names.of("git", "log") == "git__log"
    assert names.find("docs__log") == ("docs", "log")
    assert names.find("log") is None


def test_a_long_name_keeps_the_head_of_its_server_and_its_tail() -> None:
    names = exposed(["git", "filesystem-server"], [("filesystem-server", "a" * 60 + "_read_text_file")])
    name = names.of("filesystem-server", "a" * 60 + "_read_text_file")
    assert name is not None
    assert len(name) == NAME_CHARACTERS
    assert re.fullmatch(r"file[0-9a-f]{4}__a+_read_text_file", name)


@given(st.lists(st.tuples(SERVERS, TOOLS), min_size=2, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_names_fit_are_found_again_and_do_not_depend_on_order(items: list[Origin], random: Random) -> None:
    servers = sorted({server for server, _ in items})
    names = exposed(servers, items)
    shuffled = random.sample(items, len(items))
    again = ExposedNames(aliases(dict.fromkeys(random.sample(servers, len(servers)))), shuffled)
    for item in items:
        name = names.of(*item)
        assert name is not None
        assert names.find(name) == item
        assert again.of(*item) == name
        if len(servers) > 1:
            assert NAME.fullmatch(name)
            assert len(name) <= NAME_CHARACTERS


@given(st.lists(SERVERS, min_size=2, max_size=9, unique=True), TOOLS)
def test_a_name_stays_when_servers_are_added(servers: list[str], tool: str) -> None:
    name = exposed(servers[:2], [(servers[0], tool)]).of(servers[0], tool)
    assert exposed(servers, [(each, tool) for each in servers]).of(servers[0], tool) == name


@given(st.dictionaries(SERVERS, st.sampled_from([None, "a", "b_a", "GIT-1"]), max_size=9))
def test_aliases_are_valid_and_unique(servers: dict[str, str | None]) -> None:
    found = aliases(servers)
    assert found.keys() == servers.keys()
    assert len(set(found.values())) == len(found)
    assert all(ALIAS.fullmatch(alias) for alias in found.values())


def test_the_alias_of_an_entry_counts_before_a_name() -> None:
    assert aliases({"a": "git", "git": None})["a"] == "git"
    assert re.fullmatch("git[0-9a-f]{4}", aliases({"a": "git", "git": None})["git"])


def test_of_two_equal_items_the_first_counts() -> None:
    names = exposed(["git"], [("git", "log"), ("git", "log")])
    assert names.doubles == [("git", "log")]


def test_a_reserved_name_is_not_given_to_a_tool() -> None:
    names = ExposedNames({"git": "git"}, [("git", "approve")], {"approve"})
    name = names.of("git", "approve")
    assert name is not None
    assert name.endswith("__approve")
    assert names.find("approve") is None


def test_tools_whose_ends_are_equal_get_different_names() -> None:
    items = [("a", f"{number}{'x' * 40}") for number in range(2_000)]
    names = exposed(["a", "b"], items)
    assert len({names.of(*item) for item in items}) == 2_000


def test_the_uris_of_one_server_stay() -> None:
    uris = ExposedUris(["a"], [], [])
    assert uris.of("a", "mcphost+b:x") == "mcphost+b:x"
    assert uris.find("anything") == ("a", "anything")


def test_a_uri_that_one_server_lists_stays() -> None:
    uris = ExposedUris(["a", "b"], [("a", "file:///x")], [])
    assert uris.of("a", "file:///x") == "file:///x"
    assert uris.of("b", "file:///x") == "mcphost+b:file:///x"
    assert uris.find("file:///x") == ("a", "file:///x")


@pytest.mark.server_requirement("SRES-11", "SRES-12", "SRES-13")
def test_a_uri_that_two_servers_list_names_its_server() -> None:
    uris = ExposedUris(["a", "My_Server"], [("a", "file:///x"), ("My_Server", "file:///x")], [])
    assert uris.of("a", "file:///x") == "mcphost+a:file:///x"
    assert re.fullmatch(r"mcphost\+my-server-[0-9a-f]{4}:file:///x", uris.of("My_Server", "file:///x"))
    assert uris.find("file:///x") is None


@pytest.mark.server_requirement("SAPPS-01", "SSKILL-07")
def test_uris_of_interfaces_and_skills_keep_their_scheme() -> None:
    uris = ExposedUris(["a", "b"], [], [])
    assert uris.of("a", "ui://clock/face") == "ui://mcphost+a/clock/face"
    assert uris.find("skill://mcphost+b/pdf/SKILL.md") == ("b", "skill://pdf/SKILL.md")


def test_what_a_template_of_one_server_gives_is_found_there() -> None:
    uris = ExposedUris(["a", "b"], [("b", "http://x")], [("a", "file:///{path}"), ("a", "file:///logs/{n}")])
    assert uris.of("a", "file:///{path}") == "file:///{path}"
    assert uris.find("file:///any/file") == ("a", "file:///any/file")
    assert uris.of("a", "file:///any/file") == "file:///any/file"


@pytest.mark.parametrize("other", ["file:///{path}", "file:///logs/{n}", "file:{+path}"])
def test_templates_of_two_servers_that_overlap_name_their_servers(other: str) -> None:
    uris = ExposedUris(["a", "b"], [], [("a", "file:///{path}"), ("b", other)])
    assert uris.of("a", "file:///{path}") == "mcphost+a:file:///{path}"
    assert uris.of("b", other) == f"mcphost+b:{other}"
    assert uris.find("file:///logs/1") is None


def test_a_template_over_another_servers_resource_names_its_server() -> None:
    uris = ExposedUris(["a", "b"], [("b", "file:///x")], [("a", "file:///{path}")])
    assert uris.of("a", "file:///{path}") == "mcphost+a:file:///{path}"
    assert uris.find("file:///x") == ("b", "file:///x")


@pytest.mark.server_requirement("SRES-14")
@given(st.sets(SERVERS, min_size=1, max_size=4), st.data())
def test_templates_stay_valid(servers: set[str], data: st.DataObject) -> None:
    templates = data.draw(st.lists(st.tuples(st.sampled_from(sorted(servers)), TEMPLATES), max_size=6))
    uris = ExposedUris(servers, [], templates)
    for server, text in templates:
        assert UriTemplate.read(uris.of(server, text)).variables == UriTemplate.read(text).variables


@given(st.sets(SERVERS | st.sampled_from("ab"), min_size=1, max_size=4), st.data())
def test_each_exposed_uri_leads_back(servers: set[str], data: st.DataObject) -> None:
    one = st.sampled_from(sorted(servers))
    resources = data.draw(st.lists(st.tuples(one, URIS), max_size=6))
    templates = data.draw(st.lists(st.tuples(one, TEMPLATES), max_size=6))
    uris = ExposedUris(servers, resources, templates)
    for server, uri in [*resources, *templates, (data.draw(one), data.draw(URIS))]:
        assert uris.find(uris.of(server, uri)) == (server, uri)


def test_references_in_a_result_lead_to_its_server() -> None:
    uris = ExposedUris(["a", "b"], [], [])
    link = {"type": "resource_link", "uri": "x:1", "name": "x"}
    embedded = {"type": "resource", "resource": {"uri": "x:2", "text": "t"}}
    text = {"type": "text", "text": "x:3", "uri": "x:3"}
    found = uris.in_result(
        "a", {"content": [link, embedded, text, None, 5], "_meta": {"ui": {"resourceUri": "ui://x"}}}
    )
    assert found == {
        "content": [
            {**link, "uri": "mcphost+a:x:1"},
            {"type": "resource", "resource": {"uri": "mcphost+a:x:2", "text": "t"}},
            text,
            None,
            5,
        ],
        "_meta": {"ui": {"resourceUri": "ui://mcphost+a/x"}},
    }


def test_references_in_contents_and_prompts_lead_to_their_server() -> None:
    uris = ExposedUris(["a", "b"], [], [])
    assert uris.in_result("b", {"contents": [{"uri": "x:1"}]}) == {"contents": [{"uri": "mcphost+b:x:1"}]}
    prompt = {"messages": [{"role": "user", "content": {"type": "resource", "resource": {"uri": "x:1"}}}, "odd"]}
    mapped = uris.in_result("b", prompt)
    assert mapped["messages"][0]["content"]["resource"]["uri"] == "mcphost+b:x:1"


@pytest.mark.server_requirement("SAPPS-06")
def test_the_interface_of_a_tool_leads_to_its_server() -> None:
    uris = ExposedUris(["a", "b"], [], [])
    tool: dict[str, Any] = {"name": "t", "_meta": {"ui": {"resourceUri": "ui://x", "visibility": ["app"]}, "k": 1}}
    meta = uris.in_definition("a", tool)["_meta"]
    assert meta == {"ui": {"resourceUri": "ui://mcphost+a/x", "visibility": ["app"]}, "k": 1}


@given(st.recursive(st.none() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["content", "contents", "messages", "uri", "type", "resource", "_meta", "ui"]), inner
)))  # fmt: skip
def test_any_result_passes(result: Any) -> None:
    given = result if isinstance(result, dict) else {"content": result}
    assert ExposedUris(["a"], [], []).in_result("a", given) == given
    assert ExposedUris(["a", "b"], [], []).in_result("a", given).keys() == given.keys()
