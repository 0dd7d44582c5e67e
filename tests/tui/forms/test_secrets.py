"""A secret in a server's environment appears on no screen, in no log and in no file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcphost.config import ServerConfig
from tests.tui.stage import SERVERS, WIDE, on_stage, servers

pytestmark = pytest.mark.slow
CANARY = "canary-0123456789"
SAYS_IT = 'echo "the key is $TOKEN" >&2; exec "$0" "$@"'


def files_in(folder: Path) -> list[str]:
    return [path.read_bytes().decode(errors="replace") for path in folder.rglob("*") if path.is_file()]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("TRANS-STDIO-13", "TRANS-STDIO-06", "SEC-09")
async def test_what_a_program_was_given_in_secret_is_seen_nowhere(tmp_path: Path) -> None:
    """The program writes it to stderr and returns it from a call. Only the result shows it, as the server sent it."""
    program = ("-c", SAYS_IT, sys.executable, "-S", "-E", str(SERVERS / "echo.py"))
    config = servers(echo=ServerConfig(command="sh", args=program, env={"TOKEN": CANARY}))
    seen: list[str] = []
    async with on_stage(config, tmp_path / "state", size=WIDE) as stage:
        await stage.ready()
        stage.call("environment", {"names": ["TOKEN"]})
        await stage.call_dialog()
        seen.append(stage.text)
        await stage.press("y")
        await stage.ended()
        await stage.gone()
        for keys, words in (
            (("f3",), "the key is •••"),
            (("f4",), "tools/call"),
            (("end", "enter"), "•••"),
            (("s", "down", "enter"), "Server · echo"),
        ):
            await stage.press(*keys)
            await stage.shows(words)
            seen.append(stage.text)
        book = stage.host.traffic
        seen += [record.text for record in stage.host.logs.of_server("echo")]
        seen.append(book.export(book.since(0)).decode())
    seen += files_in(tmp_path)
    assert sum("•••" in text for text in seen) >= 5
    assert [text for text in seen if CANARY in text] == []
