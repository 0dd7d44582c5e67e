"""Where mcphost's files are, and what is said where there is no home folder or no working folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcphost.errors import ConfigError
from mcphost.places import home_folder, socket_path, state_path, users_path, with_tilde, working_folder
from tests.cli.conftest import Mcphost, mcphost

__all__ = ["mcphost"]

COMMANDS = (
    ("config", "path"), ("call", "a", "b"), ("check",), ("list", "tools"), ("report", "r.txt"),
    ("import",), ("config", "trust"), ("export", "codex"), ("add", "x", "--", "y"),
)  # fmt: skip


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without an entry among the accounts, and without HOME."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "MCPHOST_")) or name == "HOME"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MCPHOST_KEYCHAIN", "off")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)


def test_without_a_home_the_places_are_named_that_can_be_set(homeless: None, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set HOME to a folder of yours, or MCPHOST_CONFIG to a file"):
        users_path({})
    with pytest.raises(ConfigError, match="set HOME to a folder of yours, or MCPHOST_STATE_DIR to a folder"):
        state_path({})
    assert users_path({"MCPHOST_CONFIG": "/c.toml"}) == Path("/c.toml")
    assert state_path({"MCPHOST_STATE_DIR": "/s"}) == Path("/s")
    assert (home_folder(), with_tilde(Path("/a/b"))) == (None, Path("/a/b"))


@pytest.mark.parametrize("named", ["/", ".", "//", "./."])
def test_a_configuration_that_is_named_as_a_folder_is_refused(
    named: str, mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_CONFIG", named)
    for words in COMMANDS:
        done = mcphost(*words)
        assert "MCPHOST_CONFIG names a folder; name a file in it" in done.err + done.out, words
        assert done.code in (0, 2)
    assert mcphost("__complete", "call", "").err == ""


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_that_is_not_a_path_is_none(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    assert home_folder() is None


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_a_home_every_command_says_so(
    homeless: None, mcphost: Mcphost, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = mcphost(*words)
    if words[0] == "report":
        assert "your home folder is not known" in done.out
    else:
        assert "mcphost does not know your home folder; set HOME" in done.err
        assert done.code in (0, 2)
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == ["home"]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_in_a_folder_that_was_deleted_every_command_says_so(
    mcphost: Mcphost, isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = mcphost(*words)
    assert "the folder you are in is no longer there; go to another" in done.err
    assert done.code == 2
    assert not list(isolated.rglob("crashes"))
    monkeypatch.chdir(tmp_path)


def test_the_working_folder_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert working_folder() == Path.cwd()


def test_a_shell_that_asks_for_completion_hears_nothing_of_it(homeless: None, mcphost: Mcphost) -> None:
    assert mcphost("__complete", "call", "").err == ""


def test_the_socket_is_where_gates_find_it_without_the_runtime_folder() -> None:
    assert socket_path({"MCPHOST_STATE_DIR": "/s", "XDG_RUNTIME_DIR": "/run/user/1"}) == Path("/s/agents.sock")
    assert socket_path({"MCPHOST_STATE_DIR": "/s"}) == Path("/s/agents.sock")


def test_each_state_folder_with_a_long_path_has_a_socket_of_its_own(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    here = {"XDG_RUNTIME_DIR": "/run/user/1", "MCPHOST_STATE_DIR": str(deep)}
    other = {**here, "MCPHOST_STATE_DIR": str(tmp_path / ("e" * 100))}
    assert socket_path(here).parent == socket_path(other).parent == Path("/run/user/1/mcphost")
    assert socket_path(here) != socket_path(other)


def test_a_socket_whose_path_is_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than 103 bytes; set MCPHOST_STATE_DIR or XDG_RUNTIME_DIR"):
        socket_path({"MCPHOST_STATE_DIR": "/" + "é" * 60})
