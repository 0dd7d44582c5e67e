"""Settings that a host can hold are the same after an export and an import; and nothing in its file does harm."""

from __future__ import annotations

import json
import re
import string
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mcphost.config import Reference, ServerConfig
from mcphost.errors import ConfigError
from mcphost.imports.dialects.dialect import HostDialect, HostDocument
from mcphost.imports.dialects.entries import read_group
from mcphost.imports.dialects.table import dialect_of
from mcphost.imports.documents import kind_of, read_document
from mcphost.imports.export import export_servers
from mcphost.imports.found import FoundServer
from mcphost.imports.hosts import HOSTS, NO_HOST, KnownHost
from mcphost.imports.inputs import literal
from mcphost.imports.secrets import find_secrets
from mcphost.imports.survey import read_any
from mcphost.imports.variables import Syntax, taken_for_variables
from tests.imports.made_fixtures import FIXTURES

QUICKLY = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
WRITTEN = {host.dialect.id: host for host in reversed((*HOSTS, NO_HOST)) if host.dialect.path}
HOME = Path("/home/ada")

LETTERS = string.ascii_letters
WORDS = st.builds(str.__add__, st.sampled_from(LETTERS), st.text(f"{LETTERS}{string.digits}_", max_size=8))
REFERRED = WORDS.map("REFERRED_{}".format)  # a name that no entry gives its program
NAME_LETTERS = f"{LETTERS}{string.digits}_."
NAMES = st.builds(str.__add__, st.sampled_from(NAME_LETTERS), st.text(f"{NAME_LETTERS}-", max_size=12))
PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
COMMANDS = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}(?:/[a-z0-9]{1,5})?", fullmatch=True).filter(
    lambda word: not re.match(r"npx|cmd", word)
)
HEADERS = st.text(string.ascii_lowercase, min_size=1, max_size=8).map("X-{}".format)

# Strategies are made once for each dialect: hypothesis takes far longer to look at a new one than to draw from it.


def read_back(host: KnownHost, text: str) -> list[FoundServer]:
    document: Any = read_document(text.encode(), host.dialect.kind)
    source = HostDocument(host.id, "/home/ada/file", host.label, folder=HOME, platform="linux")
    return [server for group in host.dialect.groups(document) for server in read_group(group, host.dialect, source)]


@cache
def texts(syntax: Syntax, literals: st.SearchStrategy[str] = PLAIN) -> st.SearchStrategy[str]:
    """A value in mcphost's syntax that the host can express: literals and environment variables."""
    unlike = literals.filter(lambda text: not taken_for_variables(text, syntax) and not re.search(r"^%.*%$", text))
    plain = unlike.map(literal)
    if not can_spell(syntax):
        return plain
    defaults = st.none() | ASCII.filter(lambda text: not set("}$") & set(text))
    references = st.builds(partial(reference, syntax), REFERRED, defaults)
    before = st.builds(str.__add__, plain.filter(lambda text: not text.endswith("$")), references)
    return st.builds(lambda pieces, end: "".join((*pieces, end)), st.lists(before, max_size=2), plain)


def reference(syntax: Syntax, name: str, default: str | None) -> str:
    """A variable as mcphost spells it, with the default where the host has defaults."""
    with_default = default is not None and syntax.write("X", default) is not None
    return f"${{{name}:-{default}}}" if with_default else f"${{{name}}}"


def can_spell(syntax: Syntax) -> bool:
    """True if the host has environment variables. Continue has secrets instead, which become inputs."""
    return (syntax.write("X", None) or "${{").startswith("${{") is False


def programs(dialect: HostDialect) -> dict[str, st.SearchStrategy[Any]]:
    keys, values = dialect.shape.keys, texts(dialect.syntax_of("args"))
    environment = values.filter(lambda text: not re.fullmatch(r"\$\{\w+\}", text))
    entry: dict[str, st.SearchStrategy[Any]] = {
        "command": COMMANDS,
        "args": st.lists(values, max_size=3),
        "env": st.dictionaries(WORDS, environment),
    }
    if "env_vars" in keys and dialect.id != "goose":  # Goose keeps the values of such variables itself
        entry["env_vars"] = st.lists(WORDS.map("PASSED_{}".format), max_size=2)
    if "cwd" in keys:
        entry["cwd"] = WORDS.map("/srv/{}".format)
    return entry


def addresses(dialect: HostDialect) -> dict[str, st.SearchStrategy[Any]]:
    keys, shape = dialect.shape.keys, dialect.shape
    entry: dict[str, st.SearchStrategy[Any]] = {"url": WORDS.map("https://x.example/{}".format)}
    if shape.types.get("http") not in (None, "remote"):
        entry["transport"] = st.sampled_from(["http", "sse"])
    entry["http_headers"] = st.dictionaries(HEADERS, texts(dialect.syntax, ASCII), max_size=3)
    if "env_http_headers" in keys:
        entry["env_http_headers"] = st.dictionaries(HEADERS.map("Y-{}".format), WORDS, max_size=2)
    if "bearer_token_env_var" in keys or can_spell(dialect.syntax):
        entry["bearer_token_env_var"] = st.none() | WORDS
    oauth = {"client_id": WORDS, "scopes": st.lists(WORDS, min_size=1), "redirect_port": st.integers(1, 65_535)}
    optional = {key: each for key, each in oauth.items() if key in shape.oauth}
    entry["oauth"] = st.fixed_dictionaries({}, optional=optional)
    return entry


@cache
def entries(dialect: str) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """A few servers that the host can express completely."""
    told = WRITTEN[dialect].dialect
    keys = told.shape.keys
    kinds = [programs(told), addresses(told)] if "url" in keys else [programs(told)]
    more: dict[str, st.SearchStrategy[Any]] = {
        target: st.integers(1000, 600_000).map(lambda ms: ms / 1000) for target, unit in told.timeouts.values() if unit
    }
    more |= {key: st.lists(WORDS, min_size=1) for key in ("enabled_tools", "disabled_tools") if key in keys}
    if told.shape.enabled:
        more["enabled"] = st.just(False)
    tables = st.one_of([st.fixed_dictionaries(kind).map(without_empty) for kind in kinds])
    added = st.fixed_dictionaries({}, optional=more)
    return st.dictionaries(NAMES, st.builds(dict.__or__, tables, added), max_size=3)


def without_empty(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value}


def unresolved(reference: Reference, _: str) -> str:
    raise AssertionError(f"the host can be told of {reference.text}")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", sorted(WRITTEN))
@given(data=st.data())
@settings(max_examples=25, phases=QUICKLY, suppress_health_check=[HealthCheck.too_slow])
def test_an_export_is_imported_as_what_it_was(dialect: str, data: st.DataObject) -> None:
    host = WRITTEN[dialect]
    wanted = data.draw(entries(dialect))
    servers = {name: ServerConfig.model_validate(table) for name, table in wanted.items()}
    exported = export_servers(host, servers, HOME, unresolved)
    assert exported.notes == ()
    found = {server.name: dict(server.table) for server in read_back(host, exported.text)}
    defaults = {"tool_timeout_sec": 300.0} if host.id == "goose" else {}
    assert found == {name: {**defaults, **table} for name, table in wanted.items()}


def test_a_host_is_not_told_of_a_wire_that_it_does_not_speak() -> None:
    server = ServerConfig.model_validate({"url": "https://x.example/sse", "transport": "sse"})
    exported = export_servers(WRITTEN["codex"], {"old": server}, HOME)
    assert exported.text.strip() == "[mcp_servers]"
    assert "left out: Codex speaks Streamable HTTP" in str(exported.notes[0])


KEPT = ServerConfig.model_validate(
    {"url": "https://x.example", "http_headers": {"X-Key": "${keyring:db.X-Key}", "X-Other": "${file:/etc/other.key}"}}
)


def test_headers_from_variables_become_those_that_codex_knows() -> None:
    headers = {
        "Authorization": "Bearer ${X}",
        "X-Api-Key": "${CL_KEY:-none}",
        "X-Kept": "${keyring:db.X-Kept}",
        "X-Mixed": "a ${X}",
    }
    server = ServerConfig.model_validate({"url": "https://x.example", "http_headers": headers, "start": "manual"})
    exported = export_servers(WRITTEN["codex"], {"db": server}, HOME)
    entry = tomllib.loads(exported.text)["mcp_servers"]["db"]
    assert entry["bearer_token_env_var"] == "X"
    assert entry["env_http_headers"] == {"X-Api-Key": "CL_KEY", "X-Kept": "DB_X_KEPT"}
    assert [str(note) for note in exported.notes] == [
        "db.http_headers.X-Api-Key: the default of CL_KEY is lost: Codex knows none",
        "db.http_headers.X-Kept: its value stays in the keyring entry db.X-Kept: "
        "set the environment variable DB_X_KEPT",
        "db.http_headers.X-Mixed: left out: Codex has no variables; set it there, or use --inline-secrets",
    ]


def test_a_keychain_token_becomes_the_bearer_variable_of_codex() -> None:
    table = {"url": "https://x.example", "http_headers": {"authorization": "bearer ${keyring:db.TOKEN}"}}
    servers = {"db": ServerConfig.model_validate(table)}
    entry = tomllib.loads(export_servers(WRITTEN["codex"], servers, HOME).text)["mcp_servers"]["db"]
    assert entry["bearer_token_env_var"] == "TOKEN"
    inlined = export_servers(WRITTEN["codex"], servers, HOME, lambda reference, key: "s3cret").text
    assert tomllib.loads(inlined)["mcp_servers"]["db"]["http_headers"] == {"authorization": "bearer s3cret"}


@pytest.mark.parametrize("host", WRITTEN.values(), ids=WRITTEN)
def test_a_sign_in_that_no_host_knows_is_named_and_left_out(host: KnownHost) -> None:
    oauth = {"grant": "workload", "issuer": "https://login.example", "assertion": {"file": "/tok"}, "dpop": "require"}
    server = ServerConfig.model_validate({"url": "https://x.example", "oauth": oauth}, strict=False)
    exported = export_servers(host, {"ci": server}, HOME)
    notes = [str(note) for note in exported.notes]
    if "x.example" in exported.text:
        assert {note.partition(":")[0] for note in notes} == {f"ci.oauth.{key}" for key in oauth}
    assert not re.search("workload|login.example|/tok|require", exported.text)


def test_a_keychain_item_becomes_an_input_of_vs_code() -> None:
    exported = export_servers(WRITTEN["vscode"], {"db": KEPT}, HOME)
    document = json.loads(exported.text)
    assert [(each["id"], each["password"]) for each in document["inputs"]] == [
        ("db.X-Key", True),
        ("etc-other.key", True),
    ]
    assert document["servers"]["db"]["headers"] == {"X-Key": "${input:db.X-Key}", "X-Other": "${input:etc-other.key}"}
    assert "VS Code asks for the value of the keyring entry db.X-Key" in str(exported.notes[0])


def test_a_secret_named_like_a_variable_has_one_note() -> None:
    entry = ServerConfig.model_validate({"command": "db", "env": {"API_KEY": "${keyring:db.API_KEY}"}})
    told = {host: [str(note) for note in export_servers(WRITTEN[host], {"db": entry}, HOME).notes] for host in WRITTEN}
    assert [len(notes) for notes in told.values()] == [1] * len(WRITTEN)
    assert "VS Code asks for the value" in told["vscode"][0]
    assert "set the environment variable API_KEY" in told["codex"][0]


def test_a_keychain_item_becomes_a_variable_that_the_notes_name() -> None:
    exported = export_servers(WRITTEN["claude-code"], {"db": KEPT}, HOME)
    headers = json.loads(exported.text)["mcpServers"]["db"]["headers"]
    assert headers == {"X-Key": "${DB_X_KEY}", "X-Other": "${DB_OTHER}"}
    assert "set the environment variable DB_X_KEY" in str(exported.notes[0])


def test_what_a_host_would_take_for_a_variable_is_named() -> None:
    server = ServerConfig.model_validate({"command": "sh", "args": ["-c", "echo $HOME $${PATH}"]})
    exported = export_servers(WRITTEN["gemini"], {"x": server}, HOME)
    assert [str(note) for note in exported.notes] == ["x.args[1]: Gemini CLI takes part of it for a variable"]


def test_relative_paths_start_at_the_configuration_file() -> None:
    server = ServerConfig.model_validate({"command": "~/bin/x", "cwd": "tools"})
    entry = json.loads(export_servers(WRITTEN["cursor"], {"x": server}, HOME).text)["mcpServers"]["x"]
    assert (entry["command"], entry["cwd"]) == (str(Path.home() / "bin" / "x"), "/home/ada/tools")


SECRET = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
WITH_SECRETS: dict[str, dict[str, Any]] = {
    "env": {"command": "db", "env": {"TOKEN": SECRET, "OTHER": "${keyring:db.OTHER}"}},
    "args": {"command": "db", "args": ["--token", SECRET, "${keyring:db.ARG}", "${file:/etc/key}"]},
    "headers": {"url": "https://x.example", "http_headers": {"Authorization": f"Bearer {SECRET}"}},
    "url": {"url": f"https://x.example/?token={SECRET}"},
    "oauth": {"url": "https://x.example", "oauth": {"client_id": "a", "client_secret": SECRET}},
}


@pytest.mark.parametrize("place", WITH_SECRETS)
@pytest.mark.parametrize("dialect", sorted(WRITTEN))
def test_an_export_holds_no_secret_and_says_where_it_is(dialect: str, place: str) -> None:
    host, server = WRITTEN[dialect], ServerConfig.model_validate(WITH_SECRETS[place])
    exported = export_servers(host, {"db": server}, HOME)
    assert SECRET not in exported.text
    assert exported.notes
    assert not any(SECRET in str(note) for note in exported.notes)
    assert [server.refusal for server in read_back(host, exported.text)] in ([], [""])


JSON_FILES = [path for path in sorted(FIXTURES.rglob("*")) if path.suffix in (".json", ".jsonc")]
KEYS = sorted({
    *re.findall(r'"(\w+)"\s*:', "".join(path.read_text("utf-8") for path in JSON_FILES)),
    *("mcp_servers", "extensions", "context_servers", "cmd", "envs", "env_keys", "uri", "bearer_token_env_var"),
})  # fmt: skip
ODD = st.sampled_from([
    "", "${", "${env:", "${input:a}", "$${A}", "${workspaceFolder}", "\x1b[31m", "\ud800", "\0", "%A%", "npx", "cmd",
    "stdio", "http", "remote", "ws", "-", "é" * 70, "{file:x}", "${{ secrets.A }}",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | ODD
ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | ODD, inner, max_size=4),
    max_leaves=12,
)


FILES = [
    path for path in sorted(FIXTURES.rglob("*.*")) if path.is_file() and path.name not in ("expected.toml", ".env")
]
DOCUMENTS: list[Any] = [read_document(path.read_bytes(), kind_of(b"", path.name)) for path in FILES]


def damaged(data: st.DataObject, value: Any) -> Any:
    """The document with any value in any place."""
    if isinstance(value, Mapping) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: damaged(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], damaged(data, value[index]), *value[index + 1 :]]
    return data.draw(ANY)


def read_all(document: Any) -> list[FoundServer]:
    """The servers that each dialect finds in a document. Raises nothing but ConfigError."""
    found: list[FoundServer] = []
    for host in (*HOSTS, NO_HOST):
        source = HostDocument(host.id, "/srv/app/file", host.label, folder=HOME, workspace=HOME, platform="linux")
        with suppress(ConfigError):
            for group in host.dialect.groups(document):
                found += read_group(group, host.dialect, source)
    return found


@pytest.mark.hostile("C04")
@given(data=st.data())
@settings(max_examples=150, phases=QUICKLY, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    document = damaged(data, data.draw(st.sampled_from(DOCUMENTS)))
    if not isinstance(document, dict):
        return
    with suppress(ConfigError):
        dialect_of(document)
    for server in read_all(document):
        assert re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}", server.name)
        assert bool(server.table) != bool(server.refusal)
        find_secrets(server.table)
        with suppress(ValidationError):
            ServerConfig.model_validate(dict(server.table))


@given(value=ANY)
@settings(max_examples=200)
def test_any_json_is_read_or_refused_as_a_paste(value: Any) -> None:
    with suppress(ConfigError):
        read_any(json.dumps(value).encode())
