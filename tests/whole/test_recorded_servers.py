"""Real servers are recorded by two clients, and each recording is replayed to both: the answers are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.whole.recorded_servers import (
    MCPHOST,
    SERVERS,
    VARIABLE,
    WANTED,
    Answers,
    calls,
    run,
    say_by_mcphost,
    say_by_sdk,
)

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not WANTED, reason=f"{VARIABLE}=1 installs and runs twenty servers; see tests/README.md"),
    pytest.mark.parametrize("name", SERVERS),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    (made / "hello.txt").write_text("hello\n", encoding="utf-8")
    return made


def check_shared(first: Answers, second: Answers) -> None:
    """The two clients ask for different lists where a server offers little."""
    shared = {*first} & {*second}
    assert shared
    assert {each: first[each] for each in shared} == {each: second[each] for each in shared}


@pytest.mark.parametrize("recorder", ["sdk", "mcphost"])
async def test_a_recording_answers_as_its_server_did(name: str, recorder: str, folder: Path) -> None:
    server, recording = SERVERS[name], str(folder.parent / "a.mcp.jsonl")
    command, script = server.command(folder), calls(server, folder)
    recorded = [*MCPHOST, "record", recording, "--name", name, "--", *command]
    replayed = [*MCPHOST, "replay", recording]
    say = say_by_sdk if recorder == "sdk" else say_by_mcphost
    answers = await say(recorded, script, "auto")
    for mode in ("auto", "legacy"):
        check_shared(answers, await say_by_sdk(replayed, script, mode))
    for era in ("legacy", "modern"):
        check_shared(answers, await say_by_mcphost(replayed, script, era))


async def test_a_server_is_as_it_was_recorded_and_locked(name: str, folder: Path) -> None:
    server, recording, lock = SERVERS[name], str(folder.parent / "a.mcp.jsonl"), str(folder.parent / "a.lock")
    program, *words = command = server.command(folder)
    config = folder.parent / "a.toml"
    config.write_text(f"[servers.{name}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(words)}\n")
    await say_by_sdk([*MCPHOST, "record", recording, "--name", name, "--", *command], calls(server, folder), "auto")
    steps = [
        ["diff", recording, name],
        ["lock", name, "--file", lock],
        ["lock", name, "--file", lock, "--check"],
        *([] if server.changes else [["test", recording, "--yes"]]),
    ]
    for step in steps:
        code, out, err = await run("--config", str(config), *step)
        assert code == 0, (step, out, err)
    code, out, err = await run("--config", str(config), "check", "--strict", name)
    assert code in (0, 1), err
    assert "kept" in out
