"""From a file's bytes to a configuration, or to sentences about what is wrong and where."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcphost.config import (
    Config,
    ConfigErrors,
    ConfigLocation,
    ServerConfig,
    compare,
    find_config,
    load,
    load_found,
    parse,
    rule_matches,
)
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.problems import MAX_PROBLEMS
from mcphost.config.servers import AssertionConfig, OAuthConfig
from mcphost.config.surface_lock import SurfaceLock
from mcphost.errors import ConfigError
from tests.config.mistakes import FATAL, MISTAKES

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
FILE = Path("config.toml")
GOOD = '[servers.good]\ncommand = "true"\n'


@pytest.mark.hostile("C06")
@pytest.mark.requirement("HDR-11")
@pytest.mark.parametrize(("text", "line", "words"), MISTAKES, ids=[case[2] for case in MISTAKES])
def test_a_bad_entry_is_named_with_its_line_and_the_others_load(text: str, line: int, words: str) -> None:
    loaded = parse(f"{text}\n{GOOD}", FILE)
    (problem,) = loaded.problems
    assert (problem.path, problem.line) == (FILE, line)
    assert words in str(problem)
    assert str(problem).startswith(f"{FILE}:{line}: ")
    assert str(problem).isprintable()
    assert "s3cret" not in str(problem)
    assert "good" in loaded.config.servers
    assert all(error is problem for error in loaded.disabled.values())


@pytest.mark.hostile("C06")
@pytest.mark.parametrize(("text", "line", "words"), FATAL, ids=[case[2] for case in FATAL])
def test_a_mistake_that_concerns_the_whole_file_stops_it(text: str, line: int | None, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    assert words in str(caught.value)
    assert (caught.value.path, caught.value.line) == (FILE, line)


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    text = '[servers.a]\nurl = 1\nargs = 2\n[servers.b]\n[servers.c]\ncommand = "x"\n[models.m]\n'
    loaded = parse(text, FILE)
    assert [problem.line for problem in loaded.problems] == [2, 3, 4, 7]
    assert list(loaded.config.servers) == ["c"]
    both = loaded.disabled["a"]
    assert isinstance(both, ConfigErrors)
    assert (len(both.problems), both.line, str(both).count("\n")) == (2, 2, 1)
    with pytest.raises(ConfigErrors) as caught:
        parse(text + "[ui]\nmouse = 1\ntheme = 2\n[else]\n", FILE)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 7, 9, 10, 11]


def test_a_thousand_mistakes_of_one_kind_are_cut_short() -> None:
    error = parse('[servers.a]\ncommand = "x"\n' + "".join(f"k{n} = 1\n" for n in range(1000)), FILE).disabled["a"]
    assert isinstance(error, ConfigErrors)
    assert len(error.problems) == MAX_PROBLEMS + 1
    assert "and 980 more" in str(error)


def test_a_server_may_be_written_in_the_habit_of_another_program() -> None:
    assert parse('[mcp_servers.a]\ncommand = "x"\n[servers.b]\ncommand = "y"').config.servers.keys() == {"a", "b"}


def _tables(value: object) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        value = dict(iter(value))  # a key is called "keys", for which dict() would take its values
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ():
        yield from _tables(inner)


def test_the_example_is_valid_and_shows_every_key() -> None:
    loaded = load(EXAMPLE)
    assert loaded.problems == ()
    shown: dict[type[BaseModel], set[str]] = {Config: {"path", "added", "profile"}}
    shown[AssertionConfig] = {"env", "command", "github"}  # it has one key at a time; a comment shows the others
    for table in _tables(loaded.config):
        shown.setdefault(type(table), set()).update(table.model_fields_set)
    missing = {kind.__name__: kind.model_fields.keys() - keys for kind, keys in shown.items()}
    assert {kind: keys for kind, keys in missing.items() if keys} == {}
    assert shown.keys() >= {field.annotation for field in Config.model_fields.values() if field.annotation in shown}


def test_the_defaults_in_the_example_are_right() -> None:
    data = tomllib.loads(EXAMPLE.read_text())
    plain = Config()
    for section in ("limits", "ui"):
        assert data[section] == getattr(plain, section).model_dump()


def test_a_servers_own_limits_cover_only_what_they_name() -> None:
    text = '[limits]\nlist_pages = 5\nlog_lines = 7\n[servers.a]\ncommand = "x"\nlimits.log_lines = 9\n'
    config = parse(text).config
    limits = [config.limits_for(name) for name in ("a", "other")]
    assert [(some.list_pages, some.log_lines, some.list_items) for some in limits] == [(5, 9, 10_000), (5, 7, 10_000)]


@pytest.mark.parametrize(
    ("rule", "server", "tool", "fits"),
    [
        ("db:query", "db", "query", True),
        ("db:query", "db", "Query", False),
        ("*:drop_*", "db", "drop_all", True),
        ("db:*", "db2", "x", False),
        ("db:a:b", "db", "a:b", True),
        ("d[bc]:*", "dc", "x", True),
    ],
)
def test_a_rule_fits_a_server_and_a_tool(rule: str, server: str, tool: str, fits: bool) -> None:
    assert rule_matches(rule, server, tool) is fits


def test_a_tool_is_offered_when_enabled_and_not_disabled() -> None:
    server = ServerConfig(command="x", enabled_tools=("get_*", "put"), disabled_tools=("get_secret",))
    assert [tool for tool in ("get_a", "get_secret", "put", "drop") if server.enables(tool)] == ["get_a", "put"]
    assert not ServerConfig(command="x", enabled_tools=()).enables("get_a")


# Files


def test_the_first_file_of_the_search_is_found(isolated: Path, tmp_path: Path) -> None:
    explicit, project, named = tmp_path / "e.toml", tmp_path / "mcphost.toml", tmp_path / "n.toml"
    env = {"MCPHOST_CONFIG": str(named)}
    users = isolated / "config" / "mcphost" / "config.toml"
    assert find_config(None, tmp_path, {}) == ConfigLocation(None)
    users.parent.mkdir(parents=True)
    users.touch()
    assert find_config(None, tmp_path, {}) == ConfigLocation(users)
    assert find_config(None, tmp_path, env) == ConfigLocation(named)
    project.symlink_to(tmp_path / "nowhere")
    assert find_config(None, tmp_path, env) == ConfigLocation(project, needs_trust=True, user=named)
    assert find_config(explicit, tmp_path, env) == ConfigLocation(explicit)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.hostile("C06")
@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "not a regular file"),
        (_fifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (lambda path: path.write_bytes(b"#" * (MAX_FILE_BYTES + 1)), "larger than"),
        (lambda path: path.write_bytes(b"# ok\n# \xff"), ":2: is not UTF-8"),
    ],
)
def test_anything_but_a_regular_file_is_refused(tmp_path: Path, prepare: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "config.toml"
    prepare(path)
    with pytest.raises(ConfigError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_the_largest_file_loads_and_its_digest_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    content = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    content += b"#" * (MAX_FILE_BYTES - len(content))
    path.write_bytes(content)
    loaded = load(path)
    assert loaded.config.servers["good"].command == "true"
    assert (loaded.config.path, loaded.digest) == (path, hashlib.sha256(content).hexdigest())


@pytest.mark.hostile("C03")
def test_a_project_adds_servers_and_nothing_else(tmp_path: Path) -> None:
    """A repository's file sets no model, policy or limit, replaces no server and grants itself nothing."""
    user, project = tmp_path / "user.toml", tmp_path / "mcphost.toml"
    user.write_text('[servers.mine]\ncommand = "mine"\n[policy]\ndefault = "deny"\n[models.m]\nprovider = "manual"\n')
    project.write_text(
        '[policy]\ndefault = "allow"\n[models.m]\nprovider = "openai"\nbase_url = "https://evil"\nmodel = "x"\n'
        '[servers.mine]\ncommand = "evil"\n[servers.theirs]\ncommand = "x"\ntrust_hints = true\n'
        "sampling.per_minute = 999\n[servers.theirs.tools]\n"
        'a = { approval = "allow", allow_when = { x = "." } }\nb.approval = "deny"\n'
    )
    loaded = load_found(ConfigLocation(project, needs_trust=True, user=user))
    config, theirs = loaded.config, loaded.config.servers["theirs"]
    assert (config.policy.default, config.models["m"].provider) == ("deny", "manual")
    assert {name: server.command for name, server in config.servers.items()} == {"mine": "mine", "theirs": "x"}
    assert (theirs.trust_hints, theirs.sampling.per_minute) == (False, 10)
    assert {name: tool.approval for name, tool in theirs.tools.items()} == {"a": None, "b": "deny"}
    assert theirs.tools["a"].allow_when == {}
    assert [problem.line for problem in loaded.problems] == [1, 3, 11, 12, 14, 14, None]
    assert loaded.digest == hashlib.sha256(project.read_bytes()).hexdigest()
    assert load_found(ConfigLocation(None)).config == Config()


def test_a_project_does_not_share_the_users_folders() -> None:
    loaded = parse('[servers.a]\ncommand = "x"\nroots = ["/home"]\n', FILE, project=True)
    assert [(problem.line, "only your own configuration" in str(problem)) for problem in loaded.problems] == [(3, True)]
    assert loaded.config.servers["a"].roots == ()


@pytest.mark.parametrize(
    "line",
    [
        "without_pkce_metadata = true",
        'issuer_slash = "ignore"',
        'resource = "https://other"',
        'grant = "workload"',
        'assertion.command = ["steal"]',
        'audience = "https://other"',
        'token_endpoint = "https://other"',
    ],
)
@pytest.mark.requirement("WIF-05")
def test_a_project_does_not_loosen_a_sign_in(line: str) -> None:
    text = f'[servers.a]\nurl = "https://h"\n[servers.a.oauth]\n{line}\nscopes = ["x"]\n'
    loaded = parse(text, FILE, project=True)
    assert [(problem.line, "only your own configuration" in str(problem)) for problem in loaded.problems] == [(4, True)]
    assert loaded.config.servers["a"].oauth == OAuthConfig(scopes=("x",))


@pytest.mark.requirement("EMA-09")
def test_a_project_uses_no_identity_of_the_user() -> None:
    oauth = 'grant = "enterprise"\nidentity = "corp"\nclient_id = "x"\n'
    theirs = '[identity.corp]\nissuer = "https://idp"\nclient_id = "y"\n'
    loaded = parse(f'[servers.a]\nurl = "https://h"\n[servers.a.oauth]\n{oauth}{theirs}', FILE, project=True)
    ignored = [(problem.line, "is ignored in a project's file" in str(problem)) for problem in loaded.problems]
    assert ignored == [(4, True), (5, True), (7, True)]
    assert loaded.config.servers["a"].oauth == OAuthConfig(client_id="x")
    assert loaded.config.identity == {}


_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 10**20), st.floats(), st.text(max_size=8), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=4,
)
_KEYS = st.one_of(st.sampled_from(sorted(ServerConfig.model_fields)), st.text(max_size=4))


@pytest.mark.hostile("C06")
@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.booleans())
def test_every_problem_has_a_line_and_can_be_shown(entry: dict[str, Any], project: bool) -> None:
    loaded = parse(tomli_w.dumps({"servers": {"a": entry, "good": {"command": "true"}}}), FILE, project=project)
    assert "good" in loaded.config.servers
    assert ("a" in loaded.disabled) is ("a" not in loaded.config.servers)
    for problem in loaded.problems:
        assert problem.line is not None
        assert str(problem).isprintable()


def test_several_registries_or_none_may_be_named() -> None:
    assert parse("").config.registry.urls == ("https://registry.modelcontextprotocol.io",)
    assert parse("[registry]\nurls = []").config.registry.urls == ()
    assert parse('[registry]\nurls = ["http://127.0.0.1:8080/x"]').config.registry.urls == ("http://127.0.0.1:8080/x",)
    project = parse('[registry]\nurls = ["https://evil.example"]', project=True)
    assert project.config.registry == parse("").config.registry


@pytest.mark.parametrize(
    "url", ["ftp://x.example", "https://a:b@x.example", "https://${HOST}", "https://x.example/#y", "x"]
)
def test_a_registry_is_a_plain_address(url: str) -> None:
    with pytest.raises(ConfigError, match=r"registry\.urls"):
        parse(f'[registry]\nurls = ["{url}"]')


def test_the_lock_of_a_policy_is_read_beside_its_file(tmp_path: Path) -> None:
    file, lock = tmp_path / "own.toml", tmp_path / "kept.lock"
    file.write_text('[policy]\nlock = "kept.lock"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="it does not exist; write it with mcphost lock") as caught:
        load_found(ConfigLocation(file))
    assert caught.value.path == lock
    lock.write_text("<<<<<<< ours\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a lock that mcphost wrote"):
        load_found(ConfigLocation(file))
    assert load_found(ConfigLocation(file, ignores_lock=True)).config.policy.locked is None
    lock.write_text("version = 1\n", encoding="utf-8")
    before = load_found(ConfigLocation(file)).config
    assert (before.policy.lock, before.policy.locked) == (str(lock), SurfaceLock(version=1))
    lock.write_text('version = 1\n[servers.a]\nidentity = "x"\n', encoding="utf-8")
    after = load_found(ConfigLocation(file)).config
    assert compare(before, after).sections == ("policy",)


def test_a_projects_file_has_no_lock(tmp_path: Path) -> None:
    project = tmp_path / "mcphost.toml"
    project.write_text('[policy]\nlock = "kept.lock"\n', encoding="utf-8")
    loaded = load_found(ConfigLocation(project, needs_trust=True))
    assert (loaded.config.policy.lock, len(loaded.problems)) == (None, 1)
