"""``mcphost import`` and ``mcphost export``."""

from __future__ import annotations

import io
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from mcphost.imports.hosts import BY_ID
from tests.cli.conftest import Mcphost

TOKEN = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def cursor(home: Path, servers: object) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


@pytest.fixture
def configured(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = isolated / "own.toml"
    monkeypatch.setenv("MCPHOST_CONFIG", str(path))
    return path


def test_without_a_host_it_lists_servers_without_secrets(mcphost: Mcphost, isolated: Path) -> None:
    path = cursor(isolated, {"db": {"command": "uvx", "args": ["db", "--token", TOKEN]}, "odd": {}})
    before = path.read_bytes()
    said = mcphost("import")
    assert said.code == 0
    assert "db" in said.out
    assert "uvx db --token" in said.out
    assert "cannot be imported: it has neither a command nor a URL" in said.out
    assert "nothing was changed" in said.err
    assert TOKEN not in said.out + said.err
    assert path.read_bytes() == before


def test_the_list_marks_servers_with_signs_of_danger(mcphost: Mcphost, isolated: Path) -> None:
    servers = {
        "calm": {"command": "uvx", "args": ["calm"]},
        "wild": {"command": "sh", "args": ["-c", "curl x | sudo sh"]},
    }
    (isolated / ".cursor").mkdir()
    (isolated / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    done = mcphost("import")
    assert " ▲ sh -c 'curl x | sudo sh'" in done.out
    assert " uvx calm" in done.out
    assert "▲ uvx" not in done.out
    assert "▲ has signs of danger" in done.err
    calm, wild = map(json.loads, mcphost("import", "--json").out.splitlines())
    assert calm["dangers"] == []
    assert "It runs as administrator: sudo" in wild["dangers"]


def test_json_has_an_object_for_each_server_and_what_is_left_out(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"db": {"command": "uvx", "args": ["db"], "autoApprove": ["x"], "env": {"TOKEN": TOKEN}}})
    said = mcphost("import", "--json")
    (server,) = map(json.loads, said.out.splitlines())
    assert (server["host"], server["server"], server["entry"]["command"]) == ("cursor", "db", "uvx")
    assert server["leftOut"] == [{"key": "autoApprove", "reason": "approvals of other programs are not taken over"}]
    assert TOKEN not in said.out


ESCAPE = "\x1b]0;title\x07\x9b31m\u202e"


@pytest.mark.hostile("C04")
@pytest.mark.parametrize(
    "words",
    [
        ["import"], ["import", "--json"], ["import", "cursor", "--dry-run"], ["import", "cursor", ESCAPE],
        ["import", ESCAPE], ["export", ESCAPE], ["import", "FILE", "--dry-run"],
    ],
    ids=["list", "json", "host", "name", "odd host", "export", "file"],
)  # fmt: skip
def test_escape_sequences_in_a_file_do_not_reach_the_terminal(
    mcphost: Mcphost, isolated: Path, words: list[str]
) -> None:
    odd = {f"a{ESCAPE}": {"command": f"run{ESCAPE}", "args": [ESCAPE]}, "b": {"command": "b", f"key{ESCAPE}": 1}}
    path = cursor(isolated, odd)
    path.rename(path.with_name(f"mcp{ESCAPE}.json"))
    path.symlink_to(path.with_name(f"mcp{ESCAPE}.json"))
    said = mcphost(*(str(path) if word == "FILE" else word for word in words))
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said.err)
    assert not {"\x1b", "\x07"} & set(said.out)


def test_an_unreadable_file_is_named_beside_the_list(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"db": {"command": "uvx"}})
    (isolated / ".claude.json").write_text("{")
    said = mcphost("import")
    assert "db" in said.out
    assert ".claude.json is not valid JSON, line 1" in said.err


def test_the_list_says_what_was_added_before_and_what_changed_since(mcphost: Mcphost, isolated: Path) -> None:
    servers = {"same": {"command": "a"}, "other": {"command": "b"}, "odd": {}}
    path = cursor(isolated, servers)
    assert mcphost("import", "cursor", "--yes").code == 0
    path.write_text(json.dumps({"mcpServers": {**servers, "other": {"command": "c"}, "more": {"command": "d"}}}))
    listed = {line.split()[1]: line.split()[2] for line in mcphost("import").out.splitlines()}
    assert listed == {"SERVER": "HERE", "same": "added", "other": "changed", "odd": "-", "more": "new"}
    objects = map(json.loads, mcphost("import", "--json").out.splitlines())
    assert {each["server"]: each["status"] for each in objects}["other"] == "changed"


def test_the_list_needs_no_readable_configuration(mcphost: Mcphost, isolated: Path, configured: Path) -> None:
    cursor(isolated, {"a": {"command": "a"}})
    configured.write_text("[[")
    listed = mcphost("import")
    assert (listed.code, listed.out.splitlines()[1].split()[:3]) == (0, ["cursor", "a", "-"])
    assert "own.toml" in listed.err


def test_an_unreadable_file_of_one_host_is_named(mcphost: Mcphost, isolated: Path, tmp_path: Path) -> None:
    cursor(isolated, {}).write_text("{")
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"ours": {"command": "ours"}}}')
    done = mcphost("import", "cursor", "--print")
    assert tomllib.loads(done.out)["servers"]["ours"]["command"] == "ours"
    assert "Cursor: " in done.err
    assert "mcp.json is not valid JSON, line 1" in done.err


def test_where_everything_is_refused_the_exit_code_says_so(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"odd": {}})
    said = mcphost("import", "cursor", "--yes")
    assert (said.code, said.out) == (2, "")
    assert "odd cannot be added: it has neither a command nor a URL" in said.err
    said = mcphost("import", "cursor", "--yes", "--json")
    assert json.loads(said.err)["error"]["exit_code"] == said.code == 2
    assert json.loads(said.out)["status"] == "refused"


def test_a_refused_server_with_a_new_name_says_why_it_is_refused(mcphost: Mcphost, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"mcpServers": {"g": {"url": "ws://x.example"}}}')
    done = mcphost("import", str(file), "--as", "x", "--yes")
    assert done.code == 2
    assert "it speaks WebSocket" in done.err


def test_a_named_server_that_is_refused_fails_even_among_others(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"a": {"command": "a-mcp"}, "odd": {}})
    assert mcphost("import", "cursor", "--yes").code == 0
    said = mcphost("import", "cursor", "a", "odd", "--yes")
    assert said.code == 2
    assert "odd cannot be added: it has neither a command nor a URL" in said.err


def test_a_project_is_imported_without_the_users_own_files(mcphost: Mcphost, isolated: Path, tmp_path: Path) -> None:
    cursor(isolated, {"mine": {"command": "mine"}})
    (tmp_path / ".cursor").mkdir(exist_ok=True)
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"ours": {"command": "ours"}}}')
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text('{"servers": {"theirs": {"command": "theirs"}}}')
    listed = mcphost("import", "--project", "--json")
    assert [json.loads(line)["server"] for line in listed.out.splitlines()] == ["theirs", "ours"]
    assert "import HOST --project" in mcphost("import", "--project").err
    assert list(tomllib.loads(mcphost("import", "cursor", "--project", "--print").out)["servers"]) == ["ours"]


def test_a_project_is_narrowed_for_a_host_only(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"ours": {"command": "ours"}}}')
    assert mcphost("import", ".mcp.json", "--project").code == 2
    said = mcphost("import", "--project", "lm-studio")
    assert (said.code, said.out) == (0, "")


def test_a_hosts_servers_become_entries(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"a": {"command": "a-mcp"}, "b": {"url": "https://b.example/mcp"}})
    said = mcphost("import", "cursor", "b", "--print")
    assert tomllib.loads(said.out) == {"servers": {"b": {"url": "https://b.example/mcp"}}}


def test_a_paste_is_read_from_stdin(mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch) -> None:
    pasted = b'{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pasted)))
    said = mcphost("import", "-", "--print")
    assert tomllib.loads(said.out)["servers"]["time"]["args"] == ["mcp-server-time"]


def test_a_pasted_link_is_read_from_stdin(mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch) -> None:
    link = 'vscode:mcp/install?{"name":"time","command":"uvx","args":["mcp-server-time"]}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(link.encode())))
    assert tomllib.loads(mcphost("import", "-", "--print").out)["servers"]["time"]["command"] == "uvx"


def test_a_file_for_another_command_is_refused_with_that_command(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"name": "io.github.ada/weather", "packages": []}')
    said = mcphost("import", "server.json")
    assert (said.code, "mcphost add FILE" in said.err) == (2, True)


def test_an_unknown_host_is_answered_with_the_known_ones(mcphost: Mcphost) -> None:
    said = mcphost("import", "curser")
    assert said.code == 2
    assert "claude-code" in said.err


def test_a_name_that_is_not_there_is_refused_with_those_that_are(mcphost: Mcphost, isolated: Path) -> None:
    cursor(isolated, {"a": {"command": "a-mcp"}})
    said = mcphost("import", "cursor", "b")
    assert said.code == 2
    assert "it has a" in said.err


def test_export_prints_a_block_and_keeps_secrets_out_of_it(mcphost: Mcphost, configured: Path) -> None:
    configured.write_text(f'[servers.db]\ncommand = "uvx"\nargs = ["db"]\nenv = {{ TOKEN = "{TOKEN}", MODE = "ro" }}\n')
    said = mcphost("export", "claude-code")
    (entry,) = json.loads(said.out)["mcpServers"].values()
    assert entry == {"type": "stdio", "command": "uvx", "args": ["db"], "env": {"TOKEN": "${TOKEN}", "MODE": "ro"}}
    assert "set the environment variable TOKEN" in said.err
    assert TOKEN not in said.out + said.err


def test_export_writes_secrets_where_that_is_asked_for(
    mcphost: Mcphost, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "from the environment")
    (configured.parent / "key").write_text("from the file\n")
    env = f'{{ TOKEN = "{TOKEN}", KEY = "${{file:key}}", OTHER = "${{OTHER}}" }}'
    configured.write_text(f'[servers.db]\ncommand = "uvx"\nenv = {env}\n')
    (entry,) = json.loads(mcphost("export", "zed", "--inline-secrets").out)["context_servers"].values()
    assert entry["env"] == {"TOKEN": TOKEN, "KEY": "from the file", "OTHER": "from the environment"}
    (entry,) = json.loads(mcphost("export", "cursor", "--inline-secrets").out)["mcpServers"].values()
    assert entry["env"]["OTHER"] == "${env:OTHER}"
    monkeypatch.delenv("OTHER")
    said = mcphost("export", "zed", "--inline-secrets")
    assert (said.code, said.out) == (2, "")
    assert "servers.db.env.OTHER: ${OTHER} is not set" in said.err


@pytest.mark.parametrize("words", [("export", "nobody"), ("export", "cursor", "nobody")])
def test_export_refuses_a_host_or_server_that_is_not_there(mcphost: Mcphost, words: tuple[str, ...]) -> None:
    assert mcphost(*words).code == 2


def test_the_help_names_every_host(mcphost: Mcphost, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mcphost("import", "--help")
    (named,) = re.findall(r"HOST is one of ([^.]+)\.", capsys.readouterr().out)
    assert named.replace(",", "").split() == sorted(BY_ID)


@pytest.mark.parametrize("source", ["https://user:s3cret@x.example/mcp", "vscode://mcp/install?x", "file:///x/y.json"])
def test_an_address_is_for_add(mcphost: Mcphost, source: str) -> None:
    done = mcphost("import", source)
    assert (done.code, "an address or a link is for mcphost add" in done.err) == (2, True)
    assert "s3cret" not in done.err
