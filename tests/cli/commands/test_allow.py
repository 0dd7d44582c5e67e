"""``mcphost allow`` writes the approvals of the dialog for calls that were declined, and takes them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.cli.commands import allow
from mcphost.config import Config
from mcphost.config.state import StateStore, read_toml
from mcphost.errors import ConfigError
from mcphost.host.agents.declined import DeclinedCall, DeclinedCalls
from mcphost.host.consent.approval_store import from_toml
from mcphost.host.consent.approvals import Approvals, ApprovalStatus, Gate
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.models.tools import Tool

DEFINITION = {"name": "git_log", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
IDENTITY = "uvx mcp-server-git --token c4nary-t0ken (in /home/ada/app)"
SHOWN = "uvx mcp-server-git --token ••• (in /home/ada/app)"
GATE = Gate("/home/ada/app", "claude-code")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    return tmp_path


def decline(
    state: Path, definition: Mapping[str, Any] = DEFINITION, identity: str = IDENTITY, gate: Gate = GATE
) -> None:
    call = DeclinedCall("git", str(definition["name"]), identity, gate, definition, datetime.now().astimezone())
    DeclinedCalls(StateStore(state, pytest.fail)).add(call)


def answer(monkeypatch: pytest.MonkeyPatch, *answers: bool) -> None:
    waiting = list(answers)

    async def confirmed(prompt: str) -> bool:
        return waiting.pop(0)

    monkeypatch.setattr(allow, "has_terminal", lambda: True)
    monkeypatch.setattr(allow, "confirmed", confirmed)


def status(state: Path, gate: Gate | None = GATE, identity: str = IDENTITY) -> str | None:
    """The approval by which a call runs."""
    approvals = Approvals(from_toml(read_toml(state / "approvals.toml", pytest.fail)))
    found = approvals.status_of("git", identity, Tool.read(dict(DEFINITION)), gate)
    return found.remembered({"revision": "HEAD~1"}) if found.kind is ApprovalStatus.UNCHANGED else None


def test_a_declined_call_is_allowed_as_it_was_declined(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decline(state)
    answer(monkeypatch, True)
    assert main(["allow", "git:git_log"]) == 0
    shown = capsys.readouterr()
    assert IDENTITY in shown.err
    assert '"readOnlyHint": true' in shown.err
    assert status(state) is not None
    assert status(state, GATE._replace(agent="codex")) is not None
    assert status(state, Gate("/elsewhere")) is None
    assert status(state, None) is None


def test_an_approval_for_one_agent_holds_for_no_other(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decline(state)
    answer(monkeypatch, True)
    assert main(["allow", "git:git_log", "--agent", "claude-code"]) == 0
    assert (status(state) is None, status(state, GATE._replace(agent="codex"))) == (False, None)


def test_patterns_limit_the_calls(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decline(state)
    answer(monkeypatch, True, True)
    assert main(["allow", "git:git_log", "--when", "revision=^main$"]) == 0
    assert status(state) is None
    assert main(["allow", "git:git_log", "--when", "revision=^HEAD"]) == 0
    assert "revision matches '^HEAD'" in str(status(state))


def test_a_refusal_writes_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decline(state)
    answer(monkeypatch, False)
    assert main(["allow", "git:git_log"]) == 4
    assert status(state) is None


def test_each_program_of_a_name_is_asked_about(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decline(state, identity="evil")
    decline(state)
    answer(monkeypatch, False, True)
    assert main(["allow", "git:git_log"]) == 4
    assert status(state) is not None
    assert status(state, identity="evil") is None


def test_without_a_terminal_nothing_can_be_allowed(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decline(state)
    assert main(["allow", "git:git_log"]) == 2
    assert "no terminal" in capsys.readouterr().err


def test_a_tool_that_claims_to_be_destructive_is_refused(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decline(state, {**DEFINITION, "annotations": {"destructiveHint": True}})
    answer(monkeypatch)
    assert main(["allow", "git:git_log"]) == 2
    assert "says that it is destructive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "declined were git:git_log"),
        (("git",), "name what to allow as NAME:TOOL"),
        (("git:git_push",), "declined were git:git_log"),
        (("git:git_log", "--agent", "codex"), "by codex was declined"),
        (("git:git_log", "--when", "x"), "write ARGUMENT=PATTERN"),
        (("git:git_log", "--when", "x=("), "is not a regular expression"),
        (("--remove", "git:git_log"), "nothing of git:git_log is allowed"),
    ],
)
def test_a_wrong_name_is_refused_with_a_sentence(
    words: tuple[str, ...], said: str, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decline(state)
    answer(monkeypatch)
    assert main(["allow", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_approvals_are_listed_and_taken_back(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decline(state)
    answer(monkeypatch, True)
    main(["allow", "git:git_log", "--agent", "claude-code"])
    capsys.readouterr()
    assert main(["allow", "--list", "--json"]) == 0
    (listed,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert {key: listed[key] for key in ("server", "tool", "gate", "runs")} == {
        "server": "git", "tool": "git_log", "gate": GATE._asdict(), "runs": SHOWN,
    }  # fmt: skip
    assert main(["allow", "--list"]) == 0
    table = capsys.readouterr().out
    assert ("SERVER:NAME" in table, "claude-code  any arguments" in table) == (True, True)
    assert main(["allow", "--remove", "git:git_log"]) == 0
    assert status(state) is None
    records = [json.loads(line) for line in (state / "audit.jsonl").read_text().splitlines()]
    assert [(each["event"], each["allowed"]) for each in records] == [("approval", True), ("approval", False)]
    assert all(each["sent_to"] == SHOWN and each["agent"] == "claude-code" for each in records)


MAIN = "skill://pdf/SKILL.md"
SKILL = {
    "uri": MAIN,
    "frontmatter": {"name": "pdf", "description": "Fills in forms."},
    "resources": [{"uri": MAIN, "digest": f"sha256:{'0' * 64}", "size": 3}],
}


@pytest.mark.requirement("SKILL-12")
@pytest.mark.parametrize("named", [MAIN, "pdf"])
async def test_a_skill_is_allowed_listed_and_taken_back(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    answer(monkeypatch, True)
    config = Config.model_validate({})
    done = await allow.allow_skill("docs", Skill.read(SKILL), IDENTITY, config)
    assert done.text == 'docs:"pdf" is allowed, as long as its files are the same\n'
    assert '"SKILL.md", 3 B, sha256:' in capsys.readouterr().err
    listed = await allow.list_approvals("", None, as_json=True)
    shown = json.loads(listed.text)
    assert {name: shown[name] for name in ("server", "skill", "files", "runs")} == {
        "server": "docs", "skill": MAIN, "files": 1, "runs": SHOWN,
    }  # fmt: skip
    assert f"docs:{MAIN}" in (await allow.list_approvals("docs", None, as_json=False)).text
    assert "asked again" in (await allow.take_back("docs", named, None, {}, config)).text
    assert (await allow.list_approvals("", None, as_json=True)).text == ""


@pytest.mark.parametrize(
    ("resources", "why"), [("dynamic", "vouches for no file"), (None, "The entry has null in place of its files")]
)
async def test_a_skill_without_its_files_cannot_be_allowed(state: Path, resources: object, why: str) -> None:
    skill = Skill.read({**SKILL, "resources": resources})
    with pytest.raises(ConfigError, match=f"cannot be allowed beforehand: .*{why}"):
        await allow.allow_skill("docs", skill, IDENTITY, Config.model_validate({}))
