"""The words that fit at the cursor: of the parser, of the configuration, and of what servers offered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from mcphost.cli.completion.candidates import candidates
from mcphost.cli.completion.known_names import REMEMBERED, KnownNames, harmless_items, is_harmless
from mcphost.cli.parser import COMMANDS
from tests.cli.conftest import Mcphost, echo, entry

OFFERED = {
    "git": {
        "tools": {"git_log": ["repo_path", "max_count"], "git_status": ["repo_path"]},
        "prompts": {"review": ["language"]},
        "resources": {"file:///guide.md": []},
        "templates": {"file:///x": []},
        "skills": {"pdf": ["SKILL.md", "forms.md"], "skill://pdf/SKILL.md": []},
    }
}

CALLS = """\
call = [
  { name = "log", server = "git", tool = "git_log" }, { name = "review", server = "git", prompt = "review" },
  { name = "l$(x)", server = "git", tool = "git_log" }, 1,
]
"""


@pytest.fixture
def names(tmp_path: Path, isolated: Path) -> KnownNames:
    folder, state = isolated / "config" / "mcphost", tmp_path / "state"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[servers.git]\ncommand = "x"\n[models.claude]\nprovider = "manual"\n')
    (folder / "servers.toml").write_text('[servers.added]\ncommand = "x"\n')
    (tmp_path / "mcphost.toml").write_text('[servers.project]\ncommand = "x"\n[mcp_servers.alias]\ncommand = "x"\n')
    (tmp_path / "other.toml").write_text('[servers.elsewhere]\ncommand = "x"\n')
    (tmp_path / "calls.toml").write_text(CALLS)
    (state / "chats").mkdir(parents=True)
    (state / "chats" / "abc123.jsonl").touch()
    (state / REMEMBERED).write_text(json.dumps(OFFERED))
    (state / "declined.toml").write_text('[[declined]]\nserver = "web"\ntool = "get"\n[[declined]]\nserver = "$(x)"\n')
    (state / "wrapped.toml").write_text('[[entry]]\nhost = "codex"\nname = "git"\n[[entry]]\nhost = 1\n')
    return KnownNames({"MCPHOST_STATE_DIR": str(state)}, tmp_path)


ALL = ["git", "added", "project", "alias"]
CLAUDE, CONTINUE = ["claude-code", "claude-desktop"], ["continue", "cline"]


CHECK = [
    f"--{word}"
    for word in "help config profile traffic redact json era strict call rules yes junit sarif".split()  # noqa: SIM905
]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ch", ["check", "chat"]),
        ("check ''", ALL),
        ("check git ''", ALL),
        ("check g", ["git"]),
        ("allow ''", ["web:get", "git:git_log", "git:git_status", "git:pdf", "git:skill://pdf/SKILL.md"]),
        ("allow git:skill", ["git:skill://pdf/SKILL.md"]),
        ("allow web:get --agent claude", CLAUDE),
        ("wrap claude", CLAUDE),
        ("serve g", ["git"]),
        ("skill ''", ["read", "verify"]),
        ("skill verify g", ["git"]),
        ("skill verify git ''", ["pdf", "skill://pdf/SKILL.md"]),
        ("skill read git pdf ''", ["SKILL.md", "forms.md"]),
        ("skill verify git pdf ''", []),
        ("serve --print claude", CLAUDE),
        ("unwrap codex ''", ["git"]),
        ("unwrap cursor ''", []),
        ("--config other.toml check ''", ["elsewhere"]),
        ("--config=other.toml check ''", ["elsewhere"]),
        ("check --config other.toml ''", ["elsewhere"]),
        ("check --era ''", []),
        ("check --json ''", ALL),
        ("check --", CHECK),
        ("check -- --", []),
        ("demo --era ''", ["legacy", "modern"]),
        ("demo --era=m", ["--era=modern"]),
        ("list t", ["tools", "templates"]),
        ("list tools g", ["git"]),
        ("call git git_l", ["git_log"]),
        ("call git git_log ''", ["repo_path=", "max_count="]),
        ("call git git_log repo_path=. m", ["max_count="]),
        ("call --yes git --timeout 3 git_log m", ["max_count="]),
        ("call nobody ''", []),
        ("call git git_log --output ''", []),
        ("read git ''", ["file:///guide.md"]),
        ("prompt git ''", ["review"]),
        ("prompt git review ''", ["language="]),
        ("run ''", ["log", "review"]),
        ("run --yes log ''", ["repo_path=", "max_count=", "review"]),
        ("run log max_count=1 review l", ["language="]),
        ("--config own/other.toml run ''", []),
        ("complete git ''", ["prompt:review", "template:file:///x"]),
        ("chat --model ''", ["claude"]),
        ("chat --allow git:git_s", ["git:git_status"]),
        ("chat --resume ''", ["last", "abc123"]),
        ("config c", ["check", "client-metadata"]),
        ("completion ''", ["bash", "zsh", "fish"]),
        ("help t", ["tour", "test-your-server", "traffic"]),
        ("import c", [*CLAUDE, "cursor", "codex", "codex-plugins", "copilot-cli", "copilot-intellij", *CONTINUE]),
        ("import ./", []),
        ("export --inline-secrets vs", ["vscode"]),
        ("export vscode ''", ALL),
        ("remove ''", ALL),
        ("nonsense ''", list(COMMANDS)),
        ("", list(COMMANDS)),
    ],
)
def test_what_fits_is_offered(names: KnownNames, line: str, expected: list[str]) -> None:
    found = [word for word, _ in candidates(shlex.split(line), names)]
    if line in ("", "nonsense ''"):
        assert set(found) == set(expected)
    else:
        assert found == expected or (line == "check --" and set(found) == set(expected))


READ_BY_SHELLS = [f"a{sign}b" for sign in " ;'\"\n\x1b|*=\\&<>()$`?[]{}~!#^\u05d0"]


@pytest.mark.parametrize("name", ["größe", "日本", "запись", "a.b:c"])
def test_letters_of_other_scripts_are_offered(name: str) -> None:
    assert is_harmless(name)


@pytest.mark.parametrize("name", [*READ_BY_SHELLS, "$(x)", "`x`", "-x", "~x", "#a", "!x", "", "x" * 300])
def test_a_name_that_a_shell_could_misread_is_not_offered(names: KnownNames, name: str) -> None:
    assert not is_harmless(name)
    assert harmless_items([(name, ()), ("fine", [name, "ok"])]) == {"fine": ["ok"]}
    state = Path(names._env["MCPHOST_STATE_DIR"])
    (state / REMEMBERED).write_text(json.dumps({"git": {"tools": {name: [], "fine": [name]}}}))
    fresh = KnownNames(names._env, names._cwd)
    assert candidates(["call", "git", ""], fresh) == [("fine", "")]
    assert candidates(["call", "git", "fine", ""], fresh) == []


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"git": 3}', '{"git": {"tools": []}}', '{"git": {"tools": {"a": 1}}}', "[" * 100_000]
)
def test_a_file_of_any_shape_does_no_harm(names: KnownNames, content: str) -> None:
    state = Path(names._env["MCPHOST_STATE_DIR"])
    (state / REMEMBERED).write_text(content)
    (names._cwd / "mcphost.toml").write_text(content)
    assert candidates(["call", "git", ""], names) == []
    assert "git" in [word for word, _ in candidates(["check", ""], names)]


def test_what_servers_offer_is_remembered_when_they_run(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "own.toml").write_text(entry("echo"))
    assert mcphost("__complete", "call", "echo", "").out == ""
    assert mcphost("check", "--config", "own.toml").code == 0
    assert "echo\n" in mcphost("__complete", "call", "echo", "e").out
    assert mcphost("__complete", "call", "echo", "add", "").out == "a=\nb=\n"
    remembered = tmp_path / "state" / REMEMBERED
    before = remembered.stat()
    assert mcphost("check", "--config", "own.toml").code == 0
    assert (remembered.stat().st_ino, before.st_mode & 0o777) == (before.st_ino, 0o600)


def test_a_server_of_the_command_line_is_not_remembered(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "own.toml").write_text(entry("echo"))
    assert mcphost("check", echo()).code == 0
    assert not (tmp_path / "state" / REMEMBERED).exists()
