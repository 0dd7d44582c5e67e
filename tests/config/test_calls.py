"""Saved calls: a file that people edit, and that may come from anybody."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcphost.config import Config, ServerConfig, Values
from mcphost.config.calls import HEADER, MAX_CALLS, CallsFile, SavedCall, parse_calls, saved_arguments
from mcphost.config.calls_document import with_call, without_call
from mcphost.config.models import ProfileConfig
from mcphost.errors import ConfigError, UnresolvedReference

STORM = SavedCall(name="storm", server="demo", tool="brew", arguments={"strength": 9})

EDITED = """\
# by hand

[[call]]  # the first
name = "calm"
tool = "brew"          # before the server
server = "demo"
arguments = { strength = 1, words = "a # b" }  # inline

# about the storm
[[call]]
name = "storm"
server = "demo"
tool = "brew"
expect = { is_error = false }
max_seconds = 2
[call.arguments]
# how strong
strength = 3  # of 12
"""


def calls_file(folder: Path, *, own: bool = True, **env: str) -> CallsFile:
    return CallsFile(folder / "calls.toml", Values(env, {"docs": "s3cret-docs"}.get, folder), own=own)


def test_a_call_that_is_saved_can_be_read(tmp_path: Path) -> None:
    file = calls_file(tmp_path)
    assert file.read().calls == ()
    file.save(STORM)
    assert file.read().calls == (STORM,)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*calls*")) == [file.path]


def test_a_further_call_leaves_the_rest_as_it_was() -> None:
    made = with_call(EDITED, {"name": "new", "server": "git", "prompt": "review"})
    assert made.startswith(EDITED)
    assert made.removeprefix(EDITED) == '\n[[call]]\nname = "new"\nserver = "git"\nprompt = "review"\n'


def test_saving_again_changes_only_what_differs() -> None:
    made = with_call(EDITED, {**STORM.entry, "arguments": {"strength": 9, "name": "Ada"}})
    assert made == EDITED.replace("strength = 3  # of 12", 'strength = 9  # of 12\nname = "Ada"')


def test_what_a_test_expects_goes_with_what_is_called() -> None:
    made = with_call(EDITED, {"name": "storm", "server": "demo", "prompt": "weather"})
    assert tomllib.loads(made)["call"][1] == {"name": "storm", "server": "demo", "prompt": "weather"}
    assert "# about the storm" in made


def test_removing_a_call_leaves_the_comments_of_others() -> None:
    made = without_call(EDITED, "calm")
    assert made == EDITED[: EDITED.index("[[call]]")] + EDITED[EDITED.index("# about the storm") :]
    assert without_call(made, "storm") == "# by hand\n\n# about the storm\n"


JSON = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("aé .\n#\"'", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("ab x", min_size=1, max_size=3), JSON, max_size=3))
@example({"a": "one\r\ntwo"})
def test_any_arguments_come_back_as_they_were(arguments: dict[str, Any]) -> None:
    call = SavedCall(name="any", server="demo", tool="t", arguments=saved_arguments(arguments, frozenset()))
    text = with_call(with_call(HEADER, {**STORM.entry, "name": "any"}), call.entry)
    (read,) = parse_calls(text).calls
    assert repr(sorted(read.shown.items())) == repr(sorted(arguments.items()))
    assert read.referring == frozenset()


# Mistakes.

CALL = '[[call]]\nname = "a"\nserver = "s"\ntool = "t"\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (CALL.replace("tool", "tol"), 4, 'call[0].tol: unknown key tol; did you mean "tool"?'),
        (CALL + 'prompt = "p"', 5, "has both tool and prompt; keep one"),
        ('[[call]]\nname = "a"\nserver = "s"', 1, "names nothing to call"),
        (CALL + CALL, 6, "the call in line 2 has this name, too"),
        (CALL + "expect = { text_match = 1 }", 5, 'did you mean "text_matches"?'),
        (CALL + 'expect = { text_matches = "(" }', 5, "is not a regular expression"),
        (CALL + "max_seconds = 0", 5, "must be above 0"),
        (CALL + "[call.arguments]\nx = 1\nday = 2026-01-01", 7, "day is a date or time"),
        (CALL + 'arguments = { key = "${a b}" }', 5, "key cannot be read: a ${…} does not hold a reference"),
        (CALL + "arguments = { n = inf }", 5, "n must be a finite number"),
        (CALL.replace("tool", "prompt") + "arguments = { n = 1 }", 5, "n must be a string"),
        (CALL.replace("tool", "prompt") + 'arguments = { n = "${X}" }', 5, "only arguments of a tool may"),
        (CALL.replace('"a"', '"a\\u001b[31m"'), 2, "no control or invisible characters"),
        (CALL.replace('"a"', '"a\\u202e"'), 2, "no control or invisible characters"),
        (CALL.replace('"a"', '"x=1"'), 2, "holds no '='"),
        (CALL.replace('"s"', '"stdio:rm -rf x"'), 3, "a name has 1 to 64 letters"),
        ("calls = 1\n" + CALL, 1, 'did you mean "call"?'),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int, words: str) -> None:
    loaded = parse_calls(text, Path("calls.toml"))
    (problem,) = loaded.problems
    assert problem.line == line
    assert words in str(problem)
    assert len(loaded.calls) == (1 if "this name" in words or "calls = 1" in text else 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("call = 1", "must be a list of tables"),
        ("[[call]\n", "is not valid TOML"),
        (CALL * (MAX_CALLS + 1), f"has more than {MAX_CALLS} calls"),
        ("x=" + "[" * 100_000, "is nested too deeply"),
        (".".join(["a"] * 5_000) + " = 1", "more than 64 parts"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_calls(text)


def test_deep_arguments_are_refused() -> None:
    (problem,) = parse_calls(CALL + "arguments = { a = " + "[" * 40 + "]" * 40 + " }").problems
    assert "nested more than 32 levels deep" in str(problem)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = calls_file(tmp_path)
    file.path.write_text("#" * 2_000_000)
    with pytest.raises(ConfigError, match="is larger than"):
        file.read()
    with pytest.raises(ConfigError, match="is larger than"):
        file.save(STORM)


def test_a_broken_file_is_not_written(tmp_path: Path) -> None:
    file = calls_file(tmp_path)
    file.path.write_text("[[call]\n")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        file.save(STORM)
    assert file.path.read_text() == "[[call]\n"


# References.

TOKEN = SavedCall(name="t", server="s", tool="x", arguments={"token": "${TOKEN}", "in": ["Bearer ${keyring:docs}"]})


def test_in_the_user_s_own_file_any_reference_is_resolved(tmp_path: Path) -> None:
    file = calls_file(tmp_path, TOKEN="s3cret-token")
    resolved = file.resolve(Config(), TOKEN, TOKEN.shown)
    assert resolved == {"token": "s3cret-token", "in": ["Bearer s3cret-docs"]}
    assert file._values.mask("s3cret-token s3cret-docs") == "••• •••"


def test_a_profile_s_value_comes_before_the_environment_s(tmp_path: Path) -> None:
    profiles = {"work": ProfileConfig(variables={"TOKEN": "${keyring:docs}"})}
    config = Config(profiles=profiles, profile="work")
    file = calls_file(tmp_path, TOKEN="s3cret-token")
    assert file.resolve(config, TOKEN, {"token": "${TOKEN}"}) == {"token": "s3cret-docs"}


def test_in_a_project_s_file_only_those_of_the_server_are(tmp_path: Path) -> None:
    file = calls_file(tmp_path, own=False, TOKEN="s3cret-token")
    config = Config(servers={"s": ServerConfig(url="https://h", bearer_token_env_var="TOKEN")})
    with pytest.raises(ConfigError, match=r"in holds \$\{keyring:docs\}, which is not used: .* has \$\{TOKEN\}"):
        file.resolve(config, TOKEN, TOKEN.shown)
    assert file.resolve(config, TOKEN, {"token": "${TOKEN}"}) == {"token": "s3cret-token"}
    with pytest.raises(ConfigError, match=r"servers\.s has none"):
        file.resolve(Config(), TOKEN, TOKEN.shown)


@pytest.mark.parametrize("value", ["${keyring:docs}", "plain", "${TOKEN}-${keyring:docs}"])
def test_a_profile_s_value_for_another_server_stays_here(value: str, tmp_path: Path) -> None:
    profiles = {"work": ProfileConfig(variables={"TOKEN": value})}
    servers = {"s": ServerConfig(url="https://h", bearer_token_env_var="TOKEN")}
    file = calls_file(tmp_path, own=False, TOKEN="s3cret-token")
    with pytest.raises(ConfigError, match=r"token holds \$\{TOKEN\}, which is not used"):
        file.resolve(Config(servers=servers, profiles=profiles, profile="work"), TOKEN, {"token": "${TOKEN}"})


def test_a_profile_s_value_that_the_server_has_is_resolved(tmp_path: Path) -> None:
    profiles = {"work": ProfileConfig(variables={"TOKEN": "${keyring:docs}"})}
    servers = {"s": ServerConfig(url="https://h", http_headers={"X-Token": "${keyring:docs}"})}
    file = calls_file(tmp_path, own=False, TOKEN="s3cret-token")
    config = Config(servers=servers, profiles=profiles, profile="work")
    assert file.resolve(config, TOKEN, {"token": "${TOKEN}"}) == {"token": "s3cret-docs"}


def test_only_a_reference_that_was_saved_is_resolved(tmp_path: Path) -> None:
    arguments = {"token": "${HOME}", "other": "${TOKEN}", "literal": "$${TOKEN}"}
    call = TOKEN.model_copy(update={"arguments": {**TOKEN.arguments, "literal": "$${TOKEN}"}})
    assert call.shown["literal"] == "${TOKEN}"
    file = calls_file(tmp_path, TOKEN="s3cret-token", HOME="/home/ada")
    assert file.resolve(Config(), call, arguments) == arguments
    assert file.resolve(Config(), call, {"literal": "${TOKEN}"}) == {"literal": "${TOKEN}"}


def test_an_unset_reference_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(UnresolvedReference, match="set the environment variable TOKEN"):
        calls_file(tmp_path).resolve(Config(), TOKEN, TOKEN.shown)


def test_the_file_is_beside_the_configuration_in_use(tmp_path: Path) -> None:
    users, values = tmp_path / "own" / "config.toml", Values({}, base=tmp_path)
    own = CallsFile.beside(None, users, values)
    project = CallsFile.beside(tmp_path / "mcphost.toml", users, values)
    assert (own.path, own.own) == (tmp_path / "own" / "calls.toml", True)
    assert (project.path, project.own) == (tmp_path / "calls.toml", False)
    assert CallsFile.beside(users, users, values).own


# Writing.


def test_two_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"call {number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: calls_file(tmp_path).save(STORM.model_copy(update={"name": name})), names))
    assert sorted(each.name for each in calls_file(tmp_path).read().calls) == sorted(names)


def test_a_name_is_replaced_only_on_request(tmp_path: Path) -> None:
    file = calls_file(tmp_path)
    file.save(STORM)
    with pytest.raises(ConfigError, match='another call is named "storm"'):
        file.save(STORM)
    file.save(STORM.model_copy(update={"arguments": {}}), replace=True)
    assert [each.arguments for each in file.read().calls] == [{}]
    assert file.remove("storm")
    assert not file.remove("storm")


def test_a_full_disk_says_so_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = calls_file(tmp_path)
    file.path.write_text(EDITED)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        file.save(SavedCall(name="new", server="demo", tool="t"))
    assert file.path.read_text() == EDITED
    assert list(tmp_path.glob("*calls*")) == [file.path]


KILLED = """\
import os, signal, sys
from pathlib import Path
from mcphost.config import Values
from mcphost.config.calls import CallsFile, SavedCall
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
CallsFile(Path(sys.argv[1]), Values({}), own=True).save(SavedCall(name="new", server="demo", tool="t"))
"""


def test_a_kill_while_writing_loses_no_earlier_call(tmp_path: Path) -> None:
    file = calls_file(tmp_path)
    file.path.write_text(EDITED)
    done = subprocess.run([sys.executable, "-c", KILLED, file.path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.path.read_text() == EDITED
    file.save(SavedCall(name="new", server="demo", tool="t"))  # the lock ended with its process
    assert len(file.read().calls) == 3


@pytest.mark.hostile("C07")
def test_a_link_in_a_project_is_not_followed_to_write(tmp_path: Path) -> None:
    there = tmp_path / "users.toml"
    there.write_text(EDITED)
    file = calls_file(tmp_path, own=False)
    file.path.symlink_to(there)
    with pytest.raises(ConfigError, match="is a link, which mcphost does not follow in a project"):
        file.save(SavedCall(name="new", server="demo", tool="t"))
    assert there.read_text() == EDITED


def test_a_file_in_version_control_keeps_its_rights_and_its_link(tmp_path: Path) -> None:
    there = tmp_path / "shared.toml"
    there.write_text(EDITED)
    there.chmod(0o644)
    file = calls_file(tmp_path)
    file.path.symlink_to(there)
    file.remove("calm")
    assert file.path.is_symlink()
    assert there.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in file.read().calls] == ["storm"]
