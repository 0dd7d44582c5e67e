"""Secrets of the configuration, planted where servers get them, are looked for wherever mcphost writes.

The servers tell what they were given wherever they can. What a run prints, shows and leaves behind holds none of it.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.config import Config
from mcphost.host.recordings.reading import read_recording
from tests.transports.http.http_connection import Echo, Talk, Web
from tests.tui.stage import on_stage

SERVERS = Path(__file__).resolve().parents[1] / "servers"

CANARIES = {
    "IN_ENV": "canary-env-01234567",
    "IN_HEADER": "canary-header-01234567",
    "IN_BEARER": "canary-bearer-01234567",
    "IN_URL": "canary-url-01234567",
    "IN_FILE": "canary-file-01234567",
    "IN_PLAIN": "canary-plain-01234567",
    "IN_TEAM": "canary-team-01234567",
}


def telling(talk: Talk, *, defines: bool = False) -> None:
    """A server on the web that says what it was sent wherever it may: heads, bodies, errors, addresses.

    It ``defines`` its tools so, too.
    """
    heads = talk.headers
    told = f"{heads.get('x-api-key')} and {heads.get('x-team')} and {heads.get('authorization')} and {talk.path}"
    message = talk.visit.message or {}
    more: dict[str, Any] = {"X_Told": told, "Set_Cookie": f"a={told}", "WWW_Authenticate": f'Bearer realm="{told}"'}
    tool = message["params"]["name"] if message.get("method") == "tools/call" else ""
    if tool == "error":
        talk.json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": told}}, **more)
    elif tool == "page":
        talk.whole(500, told.encode(), f"text/plain; told={told}", **more)
    elif tool == "elsewhere":
        talk.whole(307, location=f"http://127.0.0.1:1/{talk.path}", **more)
    elif tool == "no-http":
        talk.raw(f"TOLD {told}\r\n\r\n".encode())
        talk.close_connection = True
    else:
        schema = {"type": "object"}
        names = "error", "page", "elsewhere", "no-http"
        tools = [{"name": name, "inputSchema": schema, "description": told if defines else ""} for name in names]
        Echo("sse", stateless=True, listens=False, tools=tools)(talk)


@contextmanager
def planted(folder: Path, kind: str = "error", serve: Callable[[Talk], None] = telling) -> Iterator[Path]:
    """A configuration whose two servers are given the canaries; the variables that hold them are set."""
    (folder / "key").write_text(CANARIES["IN_FILE"])
    args = json.dumps(["-S", "-E", str(SERVERS / "hostile.py"), "tells-secrets", "--kind", kind])
    with Web(serve) as web:
        config = folder / "own.toml"
        config.write_text(
            f"""
[servers.program]
command = "{sys.executable}"
args = {args}
env = {{ OWN_KEY = "${{IN_ENV}}", OTHER_KEY = "${{file:key}}", A_PLAIN = "${{IN_PLAIN}}" }}

[servers.web]
url = "{web.url}?token=${{IN_URL}}"
http_headers = {{ X-Api-Key = "${{IN_HEADER}}" }}
env_http_headers = {{ X-Team = "IN_TEAM" }}
bearer_token_env_var = "IN_BEARER"
"""
        )
        yield config


@pytest.fixture(autouse=True)
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**CANARIES, "MCPHOST_STATE_DIR": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)


def caught(folder: Path, *said: bytes) -> list[str]:
    """Which canaries stand in what was said, or in a file that mcphost wrote, and where."""
    places = [("what was said", each) for each in said] + [(str(path), path.read_bytes()) for path in written(folder)]
    return [f"{name} in {place}" for place, data in places for name, c in CANARIES.items() if c.encode() in data]


def written(folder: Path) -> list[Path]:
    ours = {folder / "own.toml", folder / "key"}
    return [path for path in folder.rglob("*") if path.is_file() and path not in ours]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
@pytest.mark.parametrize(
    ("server", "tool", "kind", "code", "says"),
    [
        ("program", "act", "error", 1, "the keys are"),
        ("program", "act", "failure", 1, "it failed"),
        ("program", "act", "shape", 3, "not an object"),
        ("program", "act", "crash", 3, "the keys are"),
        ("web", "error", "", 1, "and Bearer"),
        ("web", "page", "", 3, "HTTP 500"),
        ("web", "elsewhere", "", 3, "another origin"),
        ("web", "no-http", "", 3, "did not answer in HTTP"),
    ],
)
def test_what_a_command_prints_and_leaves_behind_holds_no_secret(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], server: str, tool: str, kind: str, code: int, says: str
) -> None:
    with planted(tmp_path, kind) as config:
        words = ["call", server, tool, "--yes", "--config", str(config), "--traffic", str(tmp_path / "traffic.jsonl")]
        assert main(words) == code
    said = b"".join(capfdbinary.readouterr())
    assert says.encode() in said
    assert {path.name for path in written(tmp_path)} >= {"traffic.jsonl", "audit.jsonl"}
    assert "\\u2022" in (tmp_path / "traffic.jsonl").read_text()
    recording = read_recording(tmp_path / "traffic.jsonl")
    assert recording.facts is not None
    assert {*recording.facts.servers} == {server}
    assert caught(tmp_path, said, repr(recording).encode()) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_neither_locks_nor_reports_of_changes_hold_a_secret(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    reports = "--junit", str(tmp_path / "junit.xml"), "--sarif", str(tmp_path / "sarif.json"), "--json"
    with planted(tmp_path, serve=partial(telling, defines=True)) as config:
        chosen, lock = ("--config", str(config)), tmp_path / "mcphost.lock"
        assert main([*chosen, "lock", "--full", "--resources", "--file", str(lock)]) == 0
        assert main([*chosen, "lock", "--check", "--file", str(lock), *reports]) == 0
        given = f"stdio:{sys.executable} -m nothing --api-key {CANARIES['IN_ENV']}"
        assert main([*chosen, "diff", "program", "web", *reports]) == 1
        assert main([*chosen, "diff", given, "web", *reports]) == 3
    said = b"".join(capfdbinary.readouterr())
    assert "•••".encode() in said
    assert {path.name for path in written(tmp_path)} >= {"junit.xml", "sarif.json", "mcphost.lock", "mcphost.lock.json"}
    assert caught(tmp_path, said) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_a_recorded_file_of_a_skill_holds_no_secret(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Neither a secret that mcphost knows, nor one that ``--redact`` names."""
    text = f"---\nname: keys\ndescription: Use it.\n---\n\nThe key is {CANARIES['IN_ENV']}, for AB123456.\n"
    file = tmp_path / "skills" / "keys" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    args = json.dumps(["-S", "-E", str(SERVERS / "skills.py"), "--folder", str(tmp_path / "skills")])
    (tmp_path / "own.toml").write_text(
        f"""
[servers.docs]
command = "{sys.executable}"
args = {args}
env = {{ OWN_KEY = "${{IN_ENV}}" }}
"""
    )
    words = ["skill", "verify", "docs", "--config", str(tmp_path / "own.toml"), "--redact", "[A-Z]{2}[0-9]{6}"]
    assert main([*words, "--traffic", str(tmp_path / "traffic.jsonl")]) == 0
    said = b"".join(capfdbinary.readouterr())
    file.unlink()
    recorded = (tmp_path / "traffic.jsonl").read_text()
    assert "name: keys" in recorded
    assert "AB123456" not in recorded
    assert caught(tmp_path, said) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_neither_probes_nor_their_findings_hold_a_secret(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    files = {"--junit": "junit.xml", "--sarif": "sarif.json", "--traffic": "traffic.jsonl"}
    with planted(tmp_path, serve=partial(telling, defines=True)) as config:
        words = ["check", "--strict", "--era", "legacy", "program", "--json", "--rules", "--config", str(config)]
        main([*words, *(word for option, file in files.items() for word in (option, str(tmp_path / file)))])
    said = b"".join(capfdbinary.readouterr())
    assert {path.name for path in written(tmp_path)} >= {*files.values()}
    assert "\\u2022" in (tmp_path / "traffic.jsonl").read_text()
    assert caught(tmp_path, said) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
async def test_what_the_screen_shows_and_leaves_behind_holds_no_secret(tmp_path: Path) -> None:
    """Two calls that go wrong, log, traffic and cards, what y copies of them, and each frame and line behind."""
    seen: list[str] = []
    with planted(tmp_path) as path:
        config = Config.model_validate(tomllib.loads(path.read_text()), strict=False)
        async with on_stage(config, tmp_path / "state", size=(100, 32)) as stage:
            await stage.ready()
            for server, tool in (("program", "act"), ("web", "page")):
                call = stage.call(tool, server=server)
                await stage.call_dialog()
                await stage.press("y")
                await stage.ended(call)
                await stage.gone()
                await stage.press("escape", "h", "home", "enter")
                await stage.shows(f"Result · {server} › {tool}", "•••")
                seen += [stage.text]
                await stage.press("y")
                seen += [stage.text, stage.app.clipboard]
            for page, titled in (("f3", "Logs"), ("f4", "Traffic")):
                await stage.press(page, "home")
                await stage.shows(titled)
                await stage.press("down", "down", "enter", "y")
                seen += [stage.text, stage.app.clipboard]
                await stage.press("escape")
            for _ in range(2):
                await stage.press("s", "down", "enter", "y")
                seen += [stage.text, stage.app.clipboard]
            book = stage.host.traffic
            seen += [book.pretty(frame) + book.raw(frame) for frame in book.since(0)]
            seen += [f"{record.logger} {record.text}" for record in stage.host.logs.since(0)]
    shown = "".join(letter for letter in "".join(seen) if letter not in " \n│▏")
    assert shown.count("•••") > 40
    assert caught(tmp_path, shown.encode()) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_a_report_holds_names_and_no_value(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(tmp_path, "crash") as config:
        words = {
            name: f"planted-{name}-0123456789" for name in ("arg", "literal", "address", "pattern", "mistake", "scope")
        }
        with config.open("a") as file:
            file.write(
                f"""
[servers.more]
command = "/opt/{words["address"]}/server"
args = ["--token={words["arg"]}", "x"]
env = {{ ANY = "{words["literal"]}", MIXED = "{words["scope"]}${{IN_PLAIN}}" }}
tools.act.allow_when = {{ text = "{words["pattern"]}" }}

[servers.wrong]
comand = "{words["mistake"]}"
"""
            )
        assert main(["call", "program", "act", "--yes", "--config", str(config)]) == 3
        capfdbinary.readouterr()
        report = tmp_path / "report.txt"
        assert main(["report", str(report), "--yes", "--config", str(config)]) == 0
    said = b"".join(capfdbinary.readouterr())
    text = report.read_text()
    assert text.encode() in said
    for name in ("servers.program.env.OWN_KEY", "servers.web.url", "X-Team", "servers.wrong.comand", "${IN_HEADER}"):
        assert name in text
    assert "server program" in text
    assert "event decision, server program, tool act" in text
    assert report.stat().st_mode & 0o777 == 0o600
    assert caught(tmp_path, said) == []
    assert [word for word in words.values() if word in text or word.encode() in said] == []
