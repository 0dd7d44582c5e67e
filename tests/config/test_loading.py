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
    find_config,
    load,
    load_found,
    parse,
    rule_matches,
)
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.problems import MAX_PROBLEMS
from mcphost.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
FILE = Path("config.toml")
GOOD = '[servers.good]\ncommand = "true"\n'

# What stands in the file, the line that is named, and words that the message must have.
MISTAKES = [
    ('[servers.a]\ncommand = "x"\ncomand = "y"', 3, 'servers.a.comand: unknown key comand; did you mean "command"?'),
    ('[servers.a]\nurl = "https://h"\nheaders = {}', 3, "here it is http_headers"),
    ('[servers.a]\nurl = "https://h"\nbearer_token = "s3cret"', 3, "bearer_token_env_var"),
    ('[servers.a]\ncommand = "x"\nzzz = 1', 3, "known are args, bearer_token_env_var"),
    ('[servers.a]\ncommand = "x"\n[servers.a.sampling]\nmaxtokens = 1', 4, 'did you mean "max_tokens"?'),
    ('[servers.a]\ncommand = "x"\n[servers.a.tools.t]\naproval = "ask"', 4, 'did you mean "approval"?'),
    ('[servers.a]\ncommand = "x"\nroots = [\n  "/a",\n  { path = "/b", nam = "B" },\n]', 5, "servers.a.roots[1].nam"),
    ('[servers.a]\ncommand = "x"\noauth = { client_id = "y" }', 3, "oauth has no meaning for a server with a command"),
    ('[servers.a]\nurl = "https://h"\nargs = []', 3, "args has no meaning for a server with a url"),
    ('[servers.a]\nargs = []\ncommand = "x"\n\nurl = "https://h"', 5, "has both command and url"),
    ("\n[servers.a]\nenabled = true", 2, "needs command"),
    ("[servers.a]\ncommand = 5", 2, "must be a string, not a number"),
    ('[servers.a]\ncommand = "x"\nenabled = "yes"', 3, "must be true or false, not a string"),
    ('[servers.a]\ncommand = "x"\nargs = "y"', 3, "must be a list [ … ], not a string"),
    (
        '[servers.a]\ncommand = "x"\nargs = [\n  "y", # a ] in a comment\n  2,\n]',
        5,
        "servers.a.args[1]: must be a string",
    ),
    ('[servers.a]\ncommand = "x"\nenv = { A = "1",  B = true }', 3, "servers.a.env.B: must be a string"),
    ('[servers.a]\ncommand = "x"\nenv."A B".C = "1"', 3, 'servers.a.env."A B": must be a string, not a table'),
    ('[servers.a]\ncommand = "x"\nenv = 2020-01-01', 3, "not a date or time"),
    ('[servers.a]\ncommand = "x"\nenv = { "A=B" = "1" }', 3, "is not the name of an environment variable"),
    ('[servers.a]\ncommand = "x"\ntool_timeout_sec = 0', 3, "must be above 0"),
    ('[servers.a]\ncommand = "x"\ntool_timeout_sec = inf', 3, "must be a finite number"),
    ('[servers.a]\ncommand = "x"\ntool_timeout_sec = 900', 3, "above tool_timeout_max_sec"),
    ('[servers.a]\ncommand = "x"\nstart = "lasy"', 3, 'must be one of "eager", "lazy", "manual"; did you mean "lazy"?'),
    ('[servers.a]\ncommand = "x"\ntransport = "http"', 3, "does not go with a command"),
    (
        '[servers.a]\nurl = "https://h"\ntransport = "sse"\nprotocol = "modern"',
        4,
        'does not go with transport = "sse"',
    ),
    ('[servers.a]\ncommand = "x"\nminimum_version = "2025"', 3, "not a protocol revision"),
    ('[servers.a]\ncommand = "  "', 2, "is empty"),
    ('[servers.a]\ncommand = "x\\u0000"', 2, "NUL"),
    ('[servers.a]\ncommand = "x"\nsampling = { model = "gpt" }', 3, "there is no [models.gpt]"),
    ('[models.a]\nprovider = "openai"\nmodel = "m"\ninput_price = 1.0', 4, "go together; set both"),
    ('[models.a]\nprovider = "openai"\nmodel = "m"\ntakes = ["video"]', 4, 'must be one of "images", "audio", "tools"'),
    ('[servers.a]\ncommand = "x"\nargs = ["${env:A}"]', 3, "another program's spelling; write ${A}"),
    ('[servers.a]\ncommand = "x"\nargs = ["${A"]', 3, "never closed"),
    ('[servers.a]\nurl = "ftp://h"', 2, "must start with https:// or http://"),
    ('[servers.a]\nurl = "https://u:s3cret@h"', 2, "must not hold a user name or password"),
    ('[servers.a]\nurl = "https://h:x/"', 2, "is not a URL"),
    ('[servers.a]\nurl = "https://h"\nhttp_headers = { "A\\nB" = "1" }', 3, "not the name of an HTTP header"),
    ('[servers.a]\nurl = "https://h"\nhttp_headers = { A = "1\\r\\nX: s3cret" }', 3, "line break"),
    ('[servers.a]\nurl = "https://h"\nhttp_headers = { A = "é${V}" }', 3, "a character beyond ASCII"),
    ('[servers.a]\nurl = "https://h"\nhttp_headers.A = "1"\nenv_http_headers.a = "V"', 3, "the header a is set twice"),
    ('[servers.a]\nurl = "https://h"\nhttp_headers.mcp-METHOD = "x"', 3, "the header mcp-METHOD is the protocol's own"),
    ('[servers.a]\nurl = "https://h"\nenv_http_headers.Mcp-Param-X = "V"', 3, "is the protocol's own"),
    ('[servers.a]\nurl = "https://h"\noauth.registration = "static"', 3, "needs a client_id"),
    ('[servers.a]\nurl = "https://h"\noauth.registration = "cimd"', 3, "needs a client_metadata_url"),
    (
        '[servers.a]\nurl = "https://h"\noauth.grant = "client_credentials"',
        3,
        "needs client_id, and client_secret or pr",
    ),
    ('[servers.a]\nurl = "https://h"\noauth.client_secret = "s3cret"', 3, "needs the client_id that it belongs to"),
    ('[servers.a]\nurl = "https://h"\noauth.private_key = "s3cret"', 3, "needs the client_id or client_metadata_url"),
    ('[servers.a]\nurl = "https://h"\noauth.client_metadata_url = "https://h/"', 3, "must be https and have a path"),
    ('[servers.a]\nurl = "https://h"\noauth.client_metadata_url = "http://h/x"', 3, "must be https and have a path"),
    ('[servers.a]\nurl = "https://h"\noauth.without_pkce_metadata = 1', 3, "must be true or false"),
    ('[servers.a]\nurl = "https://h"\noauth.redirect_port = 70000', 3, "must be at most 65535"),
    ('[servers.a]\nurl = "https://h"\noauth.scope = ["x"]', 3, 'did you mean "scopes"?'),
    ('[servers."a b"]\ncommand = "x"', 1, 'servers."a b": a name has 1 to 64 letters'),
    ('[servers."a\\u001b[2J"]\ncommand = "x"', 1, '"a\\u001b[2J"'),
    ('[servers.-a]\ncommand = "x"', 1, "does not start with '-'"),
    ("[servers]\na = 1", 2, "servers.a: must be a table"),
    (
        '[mcp_servers.a]\ncommand = "x"\n[servers.a]\ncommand = "x"',
        1,
        "mcp_servers.a: is in [servers] as well; keep one",
    ),
    ('[models.m]\nprovider = "anthropic"', 2, "models.m: needs model"),
    ('[models.m]\nprovider = "antropic"\nmodel = "x"', 2, 'did you mean "anthropic"?'),
    ('[models.m]\nprovider = "manual"\ncost = 2', 3, "must be at most 1"),
    ('[models.m]\nmodel = "x"', 1, "models.m.provider: is missing"),
]

# The same for what concerns the whole file.
FATAL = [
    ("a = ", 1, "not valid TOML"),
    ('x = 1\n[servers.a\ncommand = "x"', 2, "not valid TOML"),
    ('[servers.a]\ncommand = "x"\n[servers.a]\ncommand = "y"', 3, "remove one of them"),
    ('[policy]\ndefault = "ask"\ndefault = "deny"\n', 3, "remove one of them"),
    ("[polcy]\n", 1, 'did you mean "policy"?'),
    ("[mcpServers.a]\n", 1, "here it is [servers.NAME]"),
    ("[[servers]]\n", 1, "servers: must be a table, [servers]"),
    ("limits = 3\n", 1, "must be a table"),
    ("\n[policy]\nallow = [\n'a:b',\n'b']", 5, 'policy.allow[1]: is not a rule; write "server:tool"'),
    ("[policy]\ndefault = 'never'", 2, 'must be one of "allow", "ask", "deny"'),
    ("[limits]\nlist_pages = 0", 2, "limits.list_pages: must be at least 1"),
    ("[limits]\nlist_pages = 1.5", 2, "must be a whole number"),
    ("[ui]\ntheme = 'drakula'", 2, 'did you mean "dracula"?'),
    ("[ui]\nmouse = 0", 2, "ui.mouse: must be true or false"),
    ("\nx = " + "1" * 5000, None, "a number too long"),
    ("x = " + "[" * 20_000 + "]" * 20_000, None, "nested too deeply"),
    ("\n" + "a." * 500_000 + "a = 1", 2, "a key of more than 64 parts"),
    ("".join(f"[servers.s{number}]\n" for number in range(100_000)), 1, "more than 500 entries"),
]


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


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
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
        value = dict(value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ():
        yield from _tables(inner)


def test_the_example_is_valid_and_shows_every_key() -> None:
    loaded = load(EXAMPLE)
    assert loaded.problems == ()
    shown: dict[type[BaseModel], set[str]] = {Config: {"path", "added"}}
    for table in _tables(loaded.config):
        shown.setdefault(type(table), set()).update(table.model_fields_set)
    missing = {kind.__name__: kind.model_fields.keys() - keys for kind, keys in shown.items()}
    assert {kind: keys for kind, keys in missing.items() if keys} == {}
    assert shown.keys() >= {field.annotation for field in Config.model_fields.values() if field.annotation in shown}


def test_what_the_example_calls_a_default_is_one() -> None:
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
def test_what_is_no_proper_file_is_refused_at_once(
    tmp_path: Path, prepare: Callable[[Path], object], words: str
) -> None:
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


def test_a_project_does_not_loosen_a_sign_in() -> None:
    text = '[servers.a]\nurl = "https://h"\n[servers.a.oauth]\nwithout_pkce_metadata = true\nscopes = ["x"]\n'
    loaded = parse(text, FILE, project=True)
    assert [(problem.line, "only your own configuration" in str(problem)) for problem in loaded.problems] == [(4, True)]
    oauth = loaded.config.servers["a"].oauth
    assert (oauth.without_pkce_metadata, oauth.scopes) == (False, ("x",))


_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 10**20), st.floats(), st.text(max_size=8), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=4,
)
_KEYS = st.one_of(st.sampled_from(sorted(ServerConfig.model_fields)), st.text(max_size=4))


@pytest.mark.hostile("C06")
@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.booleans())
def test_whatever_an_entry_holds_its_problems_have_lines_and_can_be_shown(entry: dict[str, Any], project: bool) -> None:
    loaded = parse(tomli_w.dumps({"servers": {"a": entry, "good": {"command": "true"}}}), FILE, project=project)
    assert "good" in loaded.config.servers
    assert ("a" in loaded.disabled) is ("a" not in loaded.config.servers)
    for problem in loaded.problems:
        assert problem.line is not None
        assert str(problem).isprintable()
