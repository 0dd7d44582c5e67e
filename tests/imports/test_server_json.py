"""`server.json` of every schema: each address and package as the table that runs or reaches it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.config import references_within
from mcphost.config.servers_file import validated_server
from mcphost.errors import ConfigError
from mcphost.imports.found import Origin
from mcphost.imports.inputs import fill_in, inputs_in
from mcphost.imports.server_json import ServerOffer, read_server_json, short_name

FIXTURES = Path(__file__).with_name("server_json")
HERE = Origin("server.json", "server.json", "", "")


def everything(program: str) -> bool:
    return True


def offers(document: object, *, installed: Any = everything) -> dict[str, ServerOffer]:
    """The offers by kind; of two of one kind, the second has a mark."""
    found: dict[str, ServerOffer] = {}
    for offer in read_server_json(document, HERE, installed):
        found[offer.kind if offer.kind not in found else f"{offer.kind} 2"] = offer
    return found


OWN_BASES = {"OWN_NPM": f"https://registry.{'npmjs'}.org", "OWN_PYPI": f"https://{'pypi'}.org"}
"""Where packages come from anyway. No file here names such a host as a whole: none may depend on one."""


def fixture(name: str) -> dict[str, ServerOffer]:
    text = (FIXTURES / f"{name}.json").read_text("utf-8")
    for mark, address in OWN_BASES.items():
        text = text.replace(mark, address)
    return offers(json.loads(text))


def package(kind: str = "npm", identifier: str = "@ada/x", **more: Any) -> dict[str, Any]:
    return {"registryType": kind, "identifier": identifier, "transport": {"type": "stdio"}, **more}


def words(*arguments: dict[str, Any]) -> dict[str, Any]:
    """An npm package with these arguments, positional ones unless they say otherwise."""
    return package(packageArguments=[{"type": "positional", **each} for each in arguments])


def only(entry: Mapping[str, Any], **more: Any) -> ServerOffer:
    """The one offer of a document with this package, or with this remote where it has a type."""
    key = "remotes" if "type" in entry else "packages"
    document = {"name": "io.github.ada/x", "description": "x", "version": "1", key: [entry]}
    (offer,) = read_server_json(document, HERE, more.get("installed", everything))
    return offer


def notes(offer: ServerOffer) -> dict[str, str]:
    return {note.key: note.reason for note in offer.server.notes}


def test_the_oldest_schema_is_read() -> None:
    found = fixture("2025-05-before-release")
    assert list(found) == ["npm", "oci", "remote"]
    npm = found["npm"].server
    assert (npm.name, npm.origin.name, npm.origin.scope) == ("tides", "io.github.ada/tides", "npm")
    assert npm.table == {
        "command": "npx",
        "args": ["-y", "@ada/tides@0.3.0"],
        "env": {"TIDES_KEY": "${input:TIDES_KEY}"},
    }
    (key,) = npm.inputs
    assert (key.secret, key.required, key.description) == (True, True, "Key of the harbour office")
    assert found["oci"].server.table["args"] == ["run", "--rm", "-i", "--network", "none", "ada/tides:0.3.0"]
    assert found["remote"].server.table == {"url": "https://tides.example/sse", "transport": "sse"}


def test_the_first_published_schema_is_read() -> None:
    npm = fixture("2025-07-09")["npm"]
    args = npm.server.table["args"]
    assert args == [
        "-y",
        "@ada/files@1.4.0",
        "${input:folder}",
        "--depth",
        "${input:depth}",
        "--hidden",
        "${input:hidden}",
    ]
    folder, depth, hidden = npm.server.inputs
    assert (folder.several, folder.description) == (True, "Folder to offer (a path on this machine)")
    assert (depth.default, depth.flag, depth.required) == ("3", "--depth", False)
    assert hidden.choices == ("true", "false")
    filled = fill_in(npm.server.table, npm.server.inputs, {"folder": "/a\n/b"})
    assert filled["args"] == ["-y", "@ada/files@1.4.0", "/a", "/b", "--depth", "3"]
    assert "deprecated" in notes(npm)["status"]
    assert "node" in notes(npm)["runtimeHint"]


def test_fixed_values_keep_their_text_and_ask_for_their_variables() -> None:
    pypi = fixture("2025-09-16")["pypi"].server
    assert pypi.table == {
        "command": "uvx",
        "args": ["--python", "3.12", "harbour-mcp==2.0.1", "--mode=${input:mode}"],
        "env": {
            "HARBOUR": "fixed $${HOME}",
            "HARBOUR_TOKEN": "${input:HARBOUR_TOKEN}",
            "DSN": "pg://${input:user}:${input:password}@db",
        },
    }
    required = {each.id: each.required for each in pypi.inputs}
    assert required == {"mode": False, "HARBOUR_TOKEN": False, "user": True, "password": True}
    filled = fill_in(pypi.table, pypi.inputs, {"password": "${keyring:harbour.password}"})
    assert filled["env"] == {"HARBOUR": "fixed $${HOME}", "DSN": "pg://ada:${keyring:harbour.password}@db"}
    validated_server("harbour", filled)


def test_the_latest_schema_is_read_best_offers_first() -> None:
    found = fixture("2025-12-11")
    assert list(found) == ["remote", "oci", "nuget", "mcpb", "remote 2", "cargo", "npm"]
    remote = found["remote"].server
    assert remote.table == {
        "url": "https://${input:coast}.lighthouse.example/mcp",
        "transport": "http",
        "http_headers": {"Authorization": "Bearer ${input:token}", "X-Region": "${input:X-Region}"},
    }
    filled = fill_in(remote.table, remote.inputs, {"coast": "north", "token": "${keyring:l.token}"})
    assert filled["url"] == "https://north.lighthouse.example/mcp"
    assert validated_server("l", filled).http_headers["X-Region"] == "eu"
    oci = found["oci"].server
    assert oci.table["args"] == [
        *("run", "--rm", "-i", "-e", "LAMP_KEY", "-e", "LAMP_MODE"),
        *("--mount", "type=bind,src=${input:source},dst=/lights", "ghcr.io/ada/lighthouse:3.1.4", "/lights"),
    ]
    assert oci.table["env"] == {"LAMP_KEY": "${input:LAMP_KEY}", "LAMP_MODE": "${input:LAMP_MODE}"}
    assert found["nuget"].server.table == {
        "command": "dnx",
        "args": ["Ada.Lighthouse@3.1.4", "--yes", "--", "mcp", "start"],
    }
    bundle = found["mcpb"].bundle
    assert bundle is not None
    assert bundle.url.endswith("lighthouse.mcpb")
    assert bundle.sha256.startswith("fe333e59")
    assert "mcphost add NAME -- COMMAND" in found["cargo"].server.refusal
    assert "start it, then: mcphost add URL" in found["npm"].server.refusal


def test_the_draft_is_read_and_its_instructions_are_only_told() -> None:
    found = fixture("draft")
    remote, npm = found["remote"].server, found["npm"].server
    assert (remote.name, remote.table["url"]) == ("example", "${input:base}/mcp")
    filled = fill_in(remote.table, remote.inputs, {"base": "https://mine.example"})
    assert validated_server("x", filled).url == "https://mine.example/mcp"
    assert notes(found["npm"])["postInstallInstructions"] == "not run; the publisher says: Register it as a service"
    assert npm.table["env"] == {"npm_config_registry": "https://npm.example.org"}
    assert "stays service install" not in json.dumps(npm.table)


def test_an_offer_whose_runner_is_missing_comes_after_the_others() -> None:
    document = json.loads((FIXTURES / "2025-12-11.json").read_text())
    found = offers(document, installed=lambda program: program == "dnx")
    assert list(found) == ["remote", "nuget", "mcpb", "remote 2", "oci", "cargo", "npm"]
    assert notes(found["oci"])["command"] == "docker is not installed here; it comes with Docker"


def test_pipx_takes_the_place_of_uvx() -> None:
    offer = only(package("pypi", "x", version="1.0"), installed=lambda program: program == "pipx")
    assert offer.server.table == {"command": "pipx", "args": ["run", "x==1.0"]}


@pytest.mark.parametrize(
    ("entry", "args"),
    [
        (package(version="1.2.3-beta.1+5"), ["-y", "@ada/x@1.2.3-beta.1+5"]),
        (package(), ["-y", "@ada/x"]),
        (package(version="latest"), ["-y", "@ada/x"]),
        (package(version="1.x"), ["-y", "@ada/x@1.x"]),
        (package(version="1", runtimeArguments=[{"type": "positional", "value": "-y"}]), ["-y", "@ada/x@1"]),
        (
            package(version="1", runtimeArguments=[{"type": "named", "name": "--package", "value": "@ada/x@1"}]),
            ["-y", "--package", "@ada/x@1", "@ada/x"],
        ),
        (
            package("pypi", "x", version="1", runtimeArguments=[{"type": "named", "name": "--from", "value": "x==1"}]),
            ["--from", "x==1", "x"],
        ),
        (package("pypi", "x[cli]", version="1", registryBaseUrl="https://pypi.python.example/"),
         ["--index-url", "https://pypi.python.example/", "x[cli]==1"]),
        (package("oci", "ada/x"), ["run", "--rm", "-i", "ada/x"]),
        (
            package("oci", "ada/x", version="2", registryBaseUrl="https://ghcr.io"),
            ["run", "--rm", "-i", "ghcr.io/ada/x:2"],
        ),
        (package("oci", "ada/x", version="2", registryBaseUrl="https://docker.io"), ["run", "--rm", "-i", "ada/x:2"]),
        (
            package("oci", f"ghcr.io/ada/x@sha256:{'a' * 64}", version="2"),
            ["run", "--rm", "-i", f"ghcr.io/ada/x@sha256:{'a' * 64}"],
        ),
        (
            package("oci", "ada/x:1", runtimeArguments=[{"value": "run"}, {"name": "-i", "value": ""}]),
            ["run", "--rm", "-i", "ada/x:1"],
        ),
        (package("nuget", "A.X", version="1", registryBaseUrl="https://n.example/v3"), ["A.X@1", "--yes", "--source", "https://n.example/v3"]),
        (words({"type": "named", "name": "--stdio", "value": ""}), ["-y", "@ada/x", "--stdio"]),
        (words({"type": "named", "name": "--stdio"}), ["-y", "@ada/x", "--stdio"]),
        (words({"type": "named", "name": "--level=3", "description": "How deep"}), ["-y", "@ada/x", "--level=3"]),
        (
            package("oci", "ada/x:1", runtimeArguments=[
                {"type": "named", "name": "--privileged", "description": "Needed for the harbour"},
                {"type": "named", "name": "-it", "description": "Keep the input open"},
                {"type": "named", "name": "-v", "value": "/:/host"},
            ]),
            ["run", "--rm", "-i", "--privileged", "-it", "-v", "/:/host", "ada/x:1"],
        ),
        (words({"type": "named", "name": "--n", "value": 5}), ["-y", "@ada/x", "--n", "5"]),
        (words({"value": "{a} {b}", "variables": {"b": {"value": "$"}}}), ["-y", "@ada/x", "{a} $"]),
        (words({"value": "; rm -rf ~"}), ["-y", "@ada/x", "; rm -rf ~"]),
    ],
)  # fmt: skip
def test_words_stand_where_the_runner_expects_them(entry: Mapping[str, Any], args: list[str]) -> None:
    offer = only(entry)
    assert offer.server.refusal == ""
    assert offer.server.table["args"] == args
    validated_server("x", offer.server.table)


def test_an_argument_whose_value_is_described_asks_for_it() -> None:
    offer = only(words({"type": "named", "name": "--port", "description": "Port to listen on"}))
    assert offer.server.table["args"] == ["-y", "@ada/x", "--port", "${input:port}"]
    (port,) = offer.server.inputs
    assert port.flag == "--port"


@pytest.mark.parametrize(
    "entry", [package(), package(version="latest"), package(version="1.*"), package("oci", "ada/x:latest")]
)
def test_a_version_that_is_not_exact_is_noted(entry: dict[str, Any]) -> None:
    assert "newest" in notes(only(entry))["version"]


@pytest.mark.parametrize("entry", [package(version="1"), package("oci", "localhost:5000/x:1")])
def test_an_exact_version_has_no_note(entry: dict[str, Any]) -> None:
    assert "version" not in notes(only(entry))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (package(identifier="--registry=https://evil.example"), "not the name of an npm package"),
        (package(identifier="git+https://evil.example/x"), "not the name"),
        (package(identifier="../x"), "not the name"),
        (package(identifier="x y"), "not the name"),
        (package(identifier="x\x1b[2J"), "not the name"),
        (package(version="^1.2.3"), "not an exact version"),
        (package(version="1 --registry=https://evil.example"), "not an exact version"),
        (package(registryBaseUrl="http://npm.example"), "not at a plain https address"),
        (package(registryBaseUrl="https://a:b@npm.example"), "not at a plain https address"),
        (package("pypi", "x @ https://evil.example/x.whl"), "not the name of a Python package"),
        (package("pypi", "-e."), "not the name"),
        (package("oci", "--privileged"), "not the name of an image"),
        (package("nuget", "-x"), "not the name"),
        (package("mcpb", "https://x.example/a.mcpb"), "no SHA-256"),
        (package("mcpb", "http://x.example/a.mcpb", fileSha256="a" * 64), "not https"),
        (package("mcpb", "file:///etc/passwd", fileSha256="a" * 64), "not https"),
        (package("go", "github.com/ada/x"), "packages of go have no runner"),
        (package("", "x"), "an unknown kind"),
        (package(transport={"type": "sse", "url": "http://127.0.0.1/"}), "listens at an address (sse)"),
        (package(transport=[]), "transport is not an object"),
        (package(environmentVariables=[{"value": "x"}]), "without a name"),
        (package(environmentVariables=[{"name": "A"}, {"name": "A"}]), "a name twice"),
        (package(environmentVariables={"A": "x"}), "is not a list"),
        (package(environmentVariables=[{"name": "A", "value": {"a": 1}}]), "is not a text"),
        (package(environmentVariables=[{"name": "A", "value": "x" * 5000}]), "too long"),
        (package(packageArguments=["--flag"]), "is not an object"),
        (words(*[{"value": "x"}] * 500), "too long"),
        (words({"value": "${a}", "variables": {"a": {}}}), "a $ is right"),
        ({"type": "streamable-http", "url": "https://{x}.example/mcp"}, "{x}, which nothing describes"),
        ({"type": "streamable-http", "url": "javascript:alert(1)"}, "must start with https"),
        ({"type": "streamable-http", "url": "https://ada:word@x.example"}, "user name"),
        ({"type": "streamable-http", "url": "https://x.example/\x1b]0;x\x07"}, "control character"),
        ({"type": "websocket", "url": "wss://x.example"}, "speaks no websocket"),
        ({"type": "streamable-http"}, "must start with https"),
    ],
)  # fmt: skip
def test_what_would_run_or_reach_something_else_is_refused_in_words(entry: Mapping[str, Any], words: str) -> None:
    offer = only(entry)
    assert words in offer.server.refusal
    assert offer.server.table == {}
    assert offer.server.inputs == ()


def test_two_values_of_one_name_are_asked_for_separately() -> None:
    entry = words(
        {"type": "named", "name": "-a", "value": "{x}", "variables": {"x": {"description": "one"}}},
        {"value": "{x}", "variables": {"x": {"description": "two"}}},
        {"value": "{x}!", "variables": {"x": {"description": "two"}}},
    )
    server = only(entry).server
    assert [each.id for each in server.inputs] == ["x", "x-2"]
    assert server.table["args"][2:] == ["-a", "${input:x}", "${input:x-2}", "${input:x-2}!"]


@pytest.mark.parametrize("document", [None, [], {}, {"name": 1}, {"name": "x"}, {"description": "x"}, "x"])
def test_what_is_no_server_json_is_refused(document: object) -> None:
    with pytest.raises(ConfigError):
        read_server_json(document, HERE)


def test_an_old_name_without_a_namespace_makes_a_name() -> None:
    assert short_name("Remote Filesystem Server") == "Remote-Filesystem-Server"
    assert short_name("com.stripe/mcp") == "stripe"
    assert short_name("io.github.ada/weather-mcp") == "weather-mcp"


KEYS = ("name", "value", "variables", "type", "default", "choices", "isRequired", "isRepeated", "valueHint", "a")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("a{}$\x1b-=", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"name": st.text("a-=", max_size=3)},
        optional={
            "value": st.text("a{}$", max_size=8) | JSON,
            "variables": st.dictionaries(st.just("a"), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3)),
            "isRequired": st.booleans() | JSON,
            "isRepeated": st.booleans(),
            "default": JSON,
            "choices": JSON | st.lists(st.text(max_size=2)),
        },
    ),
    max_size=4,
)


@given(
    arguments=ENTRIES | JSON,
    environment=ENTRIES | JSON,
    kind=st.sampled_from(["npm", "pypi", "oci", "nuget", "mcpb"]),
    remote=st.fixed_dictionaries({"type": st.just("sse"), "url": st.text("https:/{}a.$")}),
)
def test_any_values_are_read_or_refused(arguments: Any, environment: Any, kind: str, remote: Any) -> None:
    entry = package(kind, "x", packageArguments=arguments, environmentVariables=environment)
    document = {"name": "a.b/c", "packages": [entry], "remotes": [remote]}
    for offer in read_server_json(document, HERE, everything):
        table, asked = offer.server.table, {each.id for each in offer.server.inputs}
        assert bool(table) != bool(offer.server.refusal or offer.bundle)
        assert set(inputs_in(table)) == asked or not table
        if any(each.choices and not any(each.choices) for each in offer.server.inputs):
            continue  # no answer is allowed
        # With plain answers, nothing is a reference: no foreign text became one.
        filled = fill_in(table, offer.server.inputs, {id: _plain(offer, id) for id in asked}) if table else {}
        assert list(references_within(filled)) == []


def _plain(offer: ServerOffer, id: str) -> str:
    (asked,) = (each for each in offer.server.inputs if each.id == id)
    return next((choice.replace("${", "$${") for choice in asked.choices if choice), "plain")
