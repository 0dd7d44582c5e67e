from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config import Config, ConfigLocation, load_found, parse
from mcphost.config.changes import compare
from mcphost.config.models import ProfileConfig
from mcphost.config.profiles import in_profile, unmatched
from mcphost.config.references import substituted
from mcphost.errors import ConfigError

FILE = """\
[servers.api]
url = "${API:-http://127.0.0.1:1/mcp}"
[servers.db]
command = "db"
args = ["--of", "${STAGE}-${HOME}"]
env = { TOKEN = "${TOKEN}" }
[servers.notes]
command = "notes"
[models.m]
provider = "openai"
model = "gpt"
base_url = "${LLM}"
[profiles.dev]
servers = ["api", "d*"]
variables = { STAGE = "dev", TOKEN = "${keyring:db.dev}", LLM = "http://127.0.0.1:2" }
[profiles.prod]
variables = { API = "https://api.example.com/mcp" }
[profiles.wrong]
servers = ["ap", "x*"]
variables = { API = "ftp://x" }
"""


def profile(name: str, text: str = FILE) -> tuple[Config, list[str]]:
    config, problems = in_profile(parse(text).config, name)
    return config, [str(each) for each in problems.values()]


def test_a_profile_has_its_servers_and_puts_in_its_values() -> None:
    config, problems = profile("dev")
    assert list(config.servers) == ["api", "db"]
    assert config.servers["db"].args == ("--of", "dev-${HOME}")
    assert config.servers["db"].env == {"TOKEN": "${keyring:db.dev}"}
    assert config.models["m"].base_url == "http://127.0.0.1:2"
    assert config.profile == "dev"
    assert problems == []


def test_only_servers_with_other_values_change_with_the_profile() -> None:
    whole = parse(FILE).config
    changes = compare(whole, profile("prod")[0])
    assert changes.changed == {"api": ("url",)}
    assert not changes.added
    assert not changes.removed


def test_values_that_make_an_entry_invalid_leave_it_out() -> None:
    config, problems = profile("wrong", FILE.replace('["ap", "x*"]', '["*"]'))
    assert list(config.servers) == ["db", "notes"]
    assert problems == ["profiles.wrong: servers.api.url: must start with https:// or http:// and name a host"]


def test_a_server_that_no_entry_has_names_the_nearest() -> None:
    assert profile("wrong")[1] == ["profiles.wrong.servers[0]: no server is called ap; did you mean api?"]


def test_the_unknown_servers_of_all_profiles_are_found() -> None:
    config = parse(FILE).config
    assert [each.message for each in unmatched(config, ())] == [
        "profiles.wrong.servers[0]: no server is called ap; did you mean api?"
    ]
    assert not list(unmatched(config, {"ap"}))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("deev", FILE, "there is no profile deev; did you mean dev?"),
        ("zzz", FILE, "there is no profile zzz; there are dev, prod, wrong"),
        ("dev", "", "there is no profile dev; add a table"),
    ],
)
def test_an_unknown_profile_names_what_there_is(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        profile(name, text)


def test_an_invalid_profile_is_reported_with_its_mistake(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[profiles.dev]\nserver = []\n")
    with pytest.raises(ConfigError, match=r"c\.toml:2: profiles\.dev\.server: unknown key server"):
        load_found(ConfigLocation(path, profile="dev"))


@pytest.mark.parametrize(
    ("tools", "shown"),
    [
        ((), {"git:log", "git:push", "docs:search"}),
        (("git:*",), {"git:log", "git:push"}),
        (("!git:push",), {"git:log", "docs:search"}),
        (("!*:push", "git:*"), {"git:log"}),
        (("g*:l?g", "docs:search"), {"git:log", "docs:search"}),
        (("!*:*", "git:log"), set()),
    ],
)
def test_a_profile_shows_the_tools_that_it_chooses(tools: tuple[str, ...], shown: set[str]) -> None:
    chosen = ProfileConfig(tools=tools)
    names = ("git:log", "git:push", "docs:search")
    assert {name for name in names if chosen.shows(*name.split(":"))} == shown


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${A}/${A:-x}", "1/1"),
        ("$${A} ${B} ${keyring:A} ${file:A}", "$${A} ${B} ${keyring:A} ${file:A}"),
        ("${A", "${A"),
        ("${C}", "${A}"),
    ],
)
def test_a_value_takes_the_place_of_its_reference_alone(text: str, result: str) -> None:
    assert substituted(text, {"A": "1", "C": "${A}"}) == result


def test_a_projects_values_are_for_the_projects_servers(tmp_path: Path) -> None:
    user, project = tmp_path / "config.toml", tmp_path / "mcphost.toml"
    user.write_text('[servers.mine]\ncommand = "${TOOL}"\n')
    project.write_text('[servers.theirs]\ncommand = "${TOOL}"\n[profiles.dev]\nvariables = { TOOL = "evil" }\n')
    loaded = load_found(ConfigLocation(project, needs_trust=True, user=user, profile="dev"))
    assert loaded.config.servers["mine"].command == "${TOOL}"
    assert loaded.config.servers["theirs"].command == "evil"


def test_a_project_does_not_replace_a_profile_of_the_user(tmp_path: Path) -> None:
    user, project = tmp_path / "config.toml", tmp_path / "mcphost.toml"
    user.write_text('[servers.a]\ncommand = "a"\n[profiles.dev]\nservers = ["a"]\n')
    project.write_text('[servers.b]\ncommand = "b"\n[profiles.dev]\nservers = ["b"]\n')
    loaded = load_found(ConfigLocation(project, needs_trust=True, user=user, profile="dev"))
    assert list(loaded.config.servers) == ["a"]
    assert [each.message for each in loaded.problems] == ["profiles.dev: your own configuration has this name already"]
