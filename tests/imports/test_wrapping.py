"""mcphost is put before the servers in other hosts' files, and the bytes of the file are the same when it is gone."""

from __future__ import annotations

import json
import os
import shutil
import string
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.errors import ConfigError
from mcphost.imports import wrapped_files
from mcphost.imports.dialects.dialect import HostDocument
from mcphost.imports.dialects.entries import read_group
from mcphost.imports.documents import read_document
from mcphost.imports.hosts import BY_ID
from mcphost.imports.spans import Editable
from mcphost.imports.survey import places_of
from mcphost.imports.wrapped_files import WrapPlan, WrapRecords, plan_wraps, state_of, unwrap, write_edit
from mcphost.imports.wrapping import WrapCommand, WrapMode, entries_in, replaced, unwrap_entry, wrap_entry
from tests.imports.made_fixtures import FIXTURES, host_of_case

CASES = sorted(path.name for path in FIXTURES.iterdir())
MCPHOST = "/opt/mcphost/bin/mcphost"


def command(mode: WrapMode = "gate") -> WrapCommand:
    return WrapCommand((MCPHOST,), "/home/ada/config.toml", "/home/ada/state", mode)


class Wrapping:
    """A file of a host, its wrapping, and what is remembered of it."""

    def __init__(self, folder: Path, host: str, content: str | bytes, name: str = "file.json") -> None:
        self.host, self.file = BY_ID[host], folder / name
        self.content = content.encode() if isinstance(content, str) else content
        self.file.write_bytes(self.content)
        (folder / "state").mkdir(mode=0o700, exist_ok=True)
        self.records = WrapRecords(folder / "state", pytest.fail)

    def plan(self, *names: str, mode: WrapMode = "gate") -> WrapPlan:
        return plan_wraps(self.host, [(self.file, "", 1 << 20)], names, command(mode), self.records.entries())

    def wrap(self, *names: str, mode: WrapMode = "gate") -> WrapPlan:
        plan = self.plan(*names, mode=mode)
        for edit in plan.edits:
            write_edit(edit, self.records)
        return plan

    def unwrap(self) -> tuple[list[str], list[str]]:
        return unwrap(self.records.entries(), self.records)

    def entries(self) -> dict[str, Any]:
        content = self.file.read_bytes()
        document: Any = read_document(content, "toml" if self.file.suffix == ".toml" else "json")
        return {name: raw for _, name, raw in entries_in(self.host.dialect, document)}


def words(entry: Mapping[str, Any]) -> list[str]:
    """The command line of an entry, whatever its host calls the keys."""
    if isinstance(entry["command"], list):
        return list(entry["command"])
    return [entry["command"], *entry["args"]]


@pytest.mark.hostile("C04")
@pytest.mark.parametrize("case", CASES)
def test_a_hosts_files_are_the_same_after_wrapping(case: str, tmp_path: Path) -> None:
    files = shutil.copytree(FIXTURES / case, tmp_path / "case")
    (tmp_path / "state").mkdir(mode=0o700)
    host, records = BY_ID[host_of_case(case)], WrapRecords(tmp_path / "state", pytest.fail)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    there = [(path, "", limit) for path, _, limit in places_of(host, {}, files / "home", "linux", files / "project")]
    plan = plan_wraps(host, there, (), command(), ())
    for edit in plan.edits:
        write_edit(edit, records)
    known = "does not move", "its address holds a variable"
    assert plan.edits or (plan.left and (host.dialect.kind == "yaml" or any(each in plan.left[0] for each in known)))
    assert unwrap(records.entries(), records)[1] == []
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


def read(wrapping: Wrapping) -> list[dict[str, Any]]:
    """The servers that an import of the file would add."""
    dialect, source = wrapping.host.dialect, HostDocument(wrapping.host.id, str(wrapping.file))
    document: Any = read_document(wrapping.file.read_bytes(), "json")
    groups = dialect.groups(document)
    return [dict(server.table) for group in groups for server in read_group(group, dialect, source)]


@pytest.mark.parametrize(
    ("host", "content"),
    [
        (
            "claude-code",
            '{"mcpServers": {"git": {"command": "uvx", "args": ["git", "--", "x"], "env": {"A": "1"}}}}',
        ),
        ("claude-code", '{"mcpServers": {"web": {"url": "https://x.example/mcp", "headers": {"X-Key": "${KEY}"}}}}'),
        ("opencode", '{"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-git"]}}}'),
        ("zed", '{"context_servers": {"git": {"command": "uvx", "args": ["mcp-git"]}}}'),
    ],
)
def test_a_wrapped_entry_is_imported_without_mcphost(host: str, content: str, tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, host, content)
    before = read(wrapping)
    assert wrapping.wrap().edits
    assert read(wrapping) == before
    assert before[0]


STDIO = '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}'
HEADERS = '{"mcpServers": {"web": {"url": "https://x.example/mcp", "headers": {"X-Key": "k3y"}}}}'

PROGRAMS = {
    "claude-code": STDIO,
    "cursor": STDIO,
    "claude-desktop": STDIO,
    "copilot-cli": '{"mcpServers": {"git": {"type": "local", "command": "uvx", "args": ["mcp-server-git"]}}}',
    "vscode": '{"servers": {"git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"]}}} // end',
    "zed": '{"context_servers": {"git": {"source": "custom", "command": "uvx", "args": ["mcp-server-git"]}}}',
    "opencode": '{"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-server-git"], "enabled": false}}}',
    "kiro": '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "disabled": true}}}',
    "codex": '[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n',
    "grok": 'mcp_servers = { git = { command = "uvx", args = [ "mcp-server-git" ] } }',
}


def name_of(host: str) -> str:
    return "config.toml" if BY_ID[host].dialect.kind == "toml" else "file.json"


@pytest.mark.parametrize("host", PROGRAMS)
def test_a_wrapped_program_is_started_by_mcphost(host: str, tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, host, PROGRAMS[host], name_of(host))
    before = wrapping.entries()["git"]
    wrapping.wrap()
    files = ["--config", "/home/ada/config.toml", "--state", "/home/ada/state"]
    after = wrapping.entries()["git"]
    expected = [MCPHOST, "gate", *files, "--name", "git", "--as", host, "--", "uvx", "mcp-server-git"]
    assert words(after) == expected
    assert {key: after[key] for key in before if key not in ("command", "args")} == {
        key: before[key] for key in before if key not in ("command", "args")
    }


ADDRESSES = {
    "claude-code": HEADERS.replace('"url"', '"type": "http", "url"'),
    "cursor": HEADERS,
    "gemini": HEADERS.replace('"url"', '"type": "http", "httpUrl"'),
    "windsurf": HEADERS.replace('"url"', '"serverUrl"'),
    "vscode": '{"servers": {"web": {"type": "http", "url": "https://x.example/mcp", "headers": {"X-Key": "k3y"}}}}',
    "opencode": '{"mcp": {"web": {"type": "remote", "url": "https://x.example/mcp", "headers": {"X-Key": "k3y"}}}}',
    "codex": '[mcp_servers.web]\nurl = "https://x.example/mcp"\nhttp_headers = { X-Key = "k3y" }\n',
    "grok": '[mcp_servers.web]\nurl = "https://x.example/mcp"\n[mcp_servers.web.headers]\n"X-Key" = "k3y"\n',
}  # fmt: skip


@pytest.mark.parametrize("host", ADDRESSES)
def test_headers_of_an_address_move_to_the_environment(host: str, tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, host, ADDRESSES[host], name_of(host))
    wrapping.wrap()
    entry = wrapping.entries()["web"]
    assert words(entry)[-4:] == ["--header-env", "X-Key=MCPHOST_HEADER_1", "--", "https://x.example/mcp"]
    shape = BY_ID[host].dialect.shape
    assert entry[shape.keys["env"]] == {"MCPHOST_HEADER_1": "k3y"}
    assert entry.get("type") in (None, shape.types.get("stdio"))
    assert "k3y" not in str(words(entry)) + (tmp_path / "state" / wrapped_files.FILE).read_text()
    assert wrapping.unwrap()[1] == []
    assert wrapping.file.read_bytes() == wrapping.content


def test_variables_with_headers_are_passed_on(tmp_path: Path) -> None:
    content = """\
[mcp_servers.web]
url = "https://x.example"
bearer_token_env_var = "T"
[mcp_servers.web.env_http_headers]
K = "V"
"""
    wrapping = Wrapping(tmp_path, "codex", content, "config.toml")
    wrapping.wrap()
    entry = wrapping.entries()["web"]
    assert entry["env_vars"] == ["V", "T"]
    assert words(entry)[-6:] == ["--header-env", "K=V", "--bearer-env", "T", "--", "https://x.example"]
    wrapping.unwrap()
    assert wrapping.file.read_bytes() == wrapping.content


LEFT = {
    '{"mcpServers": {"a": {"type": "http", "url": "https://x.example"}}}': "no headers of its own",
    '{"mcpServers": {"a": {"url": "https://x.example", "headers": {"A": "b"}, "oauth": {}}}}': "signs in to it",
    '{"mcpServers": {"a": {"url": "https://u:paSSw0rd99@x.example/", "headers": {"A": "b"}}}}': "holds a secret",
    '{"mcpServers": {"a": {"url": "https://x.example/${K}", "headers": {"A": "b"}}}}': "address holds a variable",
    '{"mcpServers": {"a": {"url": "ftp://x.example", "headers": {"A": "b"}}}}': "must start with https://",
    '{"mcpServers": {"a": {"url": "https://x.example", "headers": {"Mcp-Name": "b"}}}}': "cannot be given to a gate",
    '{"mcpServers": {"a": {"url": "https://x.example", "headers": {"A": " "}}}}': "is empty, or is not plain text",
    '{"mcpServers": {"a": {"command": "x", "url": "https://x.example"}}}': "both a command and an address",
    '{"mcpServers": {"a": {"type": "ws", "url": "wss://x.example"}}}': "its type is 'ws'",
    '{"mcpServers": {"a": {"args": ["x"]}, "b": {"command": "x"}}}': "neither a command nor an address",
    '{"mcpServers": {"a": {"command": "x", "args": "y"}}}': "its args are not a list",
    '{"mcpServers": {"a": {"command": "x", "command": "y"}}}': "has the key 'command' twice",
    '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}': "has the key 'a' twice",
    '{"mcpServers": {"a": {"command": "x"}, "\\u0061": {"command": "y"}}}': "has the key 'a' twice",
}


@pytest.mark.hostile("C04")
@pytest.mark.parametrize("content", LEFT)
def test_an_entry_that_cannot_be_wrapped_is_left_alone(content: str, tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "claude-code", content)
    plan = wrapping.plan("a")
    assert plan.edits == []
    assert LEFT[content] in " ".join(plan.left)


def test_a_tap_takes_no_address(tmp_path: Path) -> None:
    plan = Wrapping(tmp_path, "cursor", HEADERS).plan(mode="tap")
    assert (plan.edits, "tap takes programs" in plan.left[0]) == ([], True)


def test_yaml_is_not_edited_but_told_what_to_write(tmp_path: Path) -> None:
    plan = Wrapping(tmp_path, "goose", "extensions:\n  git: {cmd: uvx, args: [x], type: stdio}\n", "config.yaml").plan()
    assert plan.edits == []
    assert f'write there cmd: "{MCPHOST}" and args: ["gate", "--config", ' in plan.left[0]


@pytest.mark.parametrize(
    ("host", "entry", "seconds"),
    [
        ("claude-code", {"timeout": 120_000}, "110"),
        ("claude-code", {"timeout": 8_000}, "6"),
        ("claude-code", {"timeout": 999}, None),  # which Claude Code ignores
        ("gemini", {"timeout": 600_000}, "590"),
        ("opencode", {"timeout": 5_000}, None),  # which does not limit calls
    ],
)
def test_a_gate_answers_before_a_hard_limit(
    host: str, entry: dict[str, Any], seconds: str | None, tmp_path: Path
) -> None:
    key = BY_ID[host].dialect.path[0]
    wrapping = Wrapping(tmp_path, host, json.dumps({key: {"a": {"command": "x", **entry}}}))
    wrapping.wrap()
    line = words(wrapping.entries()["a"])
    assert line[line.index("--answer-within") + 1 :][:1] == [seconds] if seconds else "--answer-within" not in line


def test_an_environment_that_names_other_files_is_said_not_to_count(tmp_path: Path) -> None:
    entry = '{"mcpServers": {"a": {"command": "x", "env": {"MCPHOST_STATE_DIR": "/evil"}}}}'
    (edit,) = Wrapping(tmp_path, "cursor", entry).plan().edits
    assert edit.changes[0].notes == (
        "its MCPHOST_STATE_DIR no longer counts for mcphost: the command line names the files",
    )


def test_wrapping_twice_changes_nothing(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap()
    plan = wrapping.plan()
    assert (plan.edits, plan.same) == ([], [f"git in {wrapping.file} is wrapped already, by gate"])


def test_a_tap_becomes_a_gate_of_the_same_program(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap(mode="tap")
    wrapping.wrap(mode="gate")
    line = words(wrapping.entries()["git"])
    assert (line.count("--"), line[1], line[-2:]) == (1, "gate", ["uvx", "mcp-server-git"])
    wrapping.unwrap()
    assert wrapping.file.read_bytes() == wrapping.content
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []


def test_an_entry_that_another_mcphost_wrapped_is_left_alone(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap()
    (tmp_path / "state" / wrapped_files.FILE).unlink()
    plan = wrapping.plan()
    assert (plan.edits, "already starts mcphost" in plan.left[0]) == ([], True)


def test_an_entry_that_changed_since_is_not_unwrapped(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap()
    changed = wrapping.file.read_bytes().replace(b"mcp-server-git", b"mcp-server-hg")
    wrapping.file.write_bytes(changed)
    done, (failed,) = wrapping.unwrap()
    assert (done, wrapping.file.read_bytes()) == ([], changed)
    assert "changed since it was wrapped" in failed
    assert f"{wrapping.file}.mcphost-backup" in failed
    assert state_of(wrapping.records.entries()[0]) == "changed since"


@pytest.mark.parametrize(("host", "indent"), [("cursor", 4), ("opencode", None)])
def test_an_entry_that_was_only_reformatted_is_restored(host: str, indent: int | None, tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, host, PROGRAMS[host])
    wrapping.wrap()
    text = json.dumps(json.loads(wrapping.file.read_text()), indent=indent)
    wrapping.file.write_text(text)
    assert state_of(wrapping.records.entries()[0]) == "wrapped"
    assert wrapping.unwrap()[1] == []
    original = PROGRAMS[host].partition('"git": ')[2].removesuffix("}}")
    assert original in wrapping.file.read_text()


def test_what_changed_elsewhere_in_the_file_stays(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap()
    other = wrapping.file.read_text().replace('{"mcpServers"', '{"new": [1], "mcpServers"')
    wrapping.file.write_text(other)
    done, failed = wrapping.unwrap()
    assert (failed, "that copy stays" in done[-1]) == ([], True)
    assert wrapping.file.read_text() == STDIO.replace('{"mcpServers"', '{"new": [1], "mcpServers"')


def test_entries_and_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    wrapping.wrap()
    wrapping.file.write_text("{}")
    assert "is not in" in wrapping.unwrap()[0][0]
    assert wrapping.records.entries() == []


def test_a_file_that_changed_after_it_was_shown_is_not_written(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    (edit,) = wrapping.plan().edits
    wrapping.file.write_text(STDIO + "\n")
    with pytest.raises(ConfigError, match="changed in the meantime"):
        write_edit(edit, wrapping.records)
    assert (wrapping.file.read_text(), wrapping.records.entries()) == (STDIO + "\n", [])


def test_a_backup_that_differs_is_kept(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO)
    older = tmp_path / "file.json.mcphost-backup"
    older.write_text("older")
    wrapping.file.chmod(0o640)
    wrapping.wrap()
    newer = tmp_path / "file.json.mcphost-backup-2"
    assert (older.read_text(), newer.read_bytes()) == ("older", wrapping.content)
    assert {path.stat().st_mode & 0o777 for path in (wrapping.file, newer)} == {0o640}


def test_a_link_stays_one_and_its_file_is_edited(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "cursor", STDIO, "real.json")
    link = tmp_path / "mcp.json"
    link.symlink_to(wrapping.file)
    (edit,) = plan_wraps(wrapping.host, [(link, "", 1 << 20)], (), command(), ()).edits
    write_edit(edit, wrapping.records)
    assert link.is_symlink()
    assert words(wrapping.entries()["git"])[0] == MCPHOST


@pytest.mark.hostile("C06")
def test_a_file_of_another_user_is_not_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapped_files, "owned_by_us", lambda status: False)
    plan = Wrapping(tmp_path, "cursor", STDIO).plan()
    assert (plan.edits, "belongs to another user" in plan.left[0]) == ([], True)


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    plan = Wrapping(tmp_path, "cursor", b" " * ((1 << 20) + 1)).plan()
    assert "is larger than" in plan.left[0]


def test_a_host_that_takes_a_path_for_a_variable_is_not_wrapped(tmp_path: Path) -> None:
    wrapping = Wrapping(tmp_path, "claude-code", STDIO)
    strange = WrapCommand((MCPHOST,), "/home/${USER}/c.toml", "/s", "gate")
    plan = plan_wraps(wrapping.host, [(wrapping.file, "", 1 << 20)], (), strange, ())
    assert "for a variable" in plan.left[0]


@pytest.mark.hostile("C07")
def test_damaged_records_are_skipped(tmp_path: Path) -> None:
    (tmp_path / wrapped_files.FILE).write_text('[[entry]]\nhost = "cursor"\nfile = "relative"\n[[entry]]\nhost = 1\n')
    assert WrapRecords(tmp_path, pytest.fail).entries() == []


# Any document

KEYS = st.text(string.ascii_letters + ' "\\.é\U0001f600', min_size=1, max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5).filter(str.isprintable),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)
ARGUMENTS = st.lists(st.text(max_size=6).filter(str.isprintable), max_size=3)
PROGRAM: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"command": st.just("run")}, optional={"args": ARGUMENTS, "env": st.just({"A": "b"})}
)
ADDRESS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "headers": st.dictionaries(
            st.text(string.ascii_letters, min_size=1, max_size=4), st.sampled_from(["k3y", 'a "}', "x\\"]), min_size=1
        ),
        "url": st.just("https://x.example/mcp"),
    },
    optional={"type": st.sampled_from(["http", "sse"])},
)
ENTRY = PROGRAM | ADDRESS
LINE_ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def json_documents(draw: st.DrawFn) -> tuple[str, str]:
    """A document with comments, and the name of a server in it."""
    name, entry = draw(KEYS), draw(ENTRY) | {"more": draw(VALUES)}
    servers = {**draw(st.dictionaries(KEYS, ENTRY, max_size=2)), name: entry}
    text = json.dumps(
        {"x": draw(VALUES), "mcpServers": servers, "z": 1},
        indent=draw(st.sampled_from([None, 2, "\t"])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])),
    )
    text = text.replace("\n", draw(LINE_ENDS)).replace('"z"', draw(st.sampled_from(['"z"', "/* } */ 'z'", "z"])))
    return draw(st.sampled_from(["", "\ufeff", "// {\n"])) + text, name


def check(text: str, kind: Editable, host: str, name: str) -> None:
    document: Any = read_document(text.encode(), kind)
    there = entries_in(BY_ID[host].dialect, document)
    path, raw = next((path, each) for path, found, each in there if found == name)
    assert isinstance(raw, dict)
    after, change, entry = wrap_entry(text, kind, BY_ID[host], path, name, raw, command())
    expected: Any = read_document(text.encode(), kind)
    replaced(expected, path, entry)
    assert read_document(after.encode(), kind) == expected
    target = [raw["url"]] if "url" in raw else words({"args": [], **raw})
    assert words(entry)[-len(target) - 1 :] == ["--", *target]
    assert unwrap_entry(after, kind, path, change.digest, change.undo) == text


@settings(max_examples=60, deadline=None)
@given(json_documents())
def test_any_json_is_the_same_after_wrapping(made: tuple[str, str]) -> None:
    check(made[0], "json", "cursor", made[1])


@st.composite
def toml_documents(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(KEYS)
    key = name if name.isascii() and name.isalpha() and draw(st.booleans()) else json.dumps(name, ensure_ascii=False)
    args = json.dumps(draw(ARGUMENTS), ensure_ascii=False)
    forms = [
        f'[mcp_servers.{key}] # table\ncommand = "run"\n# between\nargs = {args}\n[mcp_servers.{key}.env]\nA = "b"\n',
        f"[mcp_servers . {key}]\n  command = 'run' # no arguments",
        f'[mcp_servers]\n{key} = {{ command = "run", args = {args} }}\nother.command = """x"""\n',
        f'[mcp_servers]\n{key}.command = "run"\n{key}.args = [ # one\n  "a",\n]\n',
        f'[mcp_servers.{key}.env]\nA = "]"\n[[list]]\nx = 1\n[mcp_servers.{key}]\nargs = {args}\ncommand = "run"\n',
        f'[mcp_servers.{key}] # table\nurl = "https://x.example"\nhttp_headers = {{ A = "b", "C" = \'d\' }}\n',
        f'[mcp_servers]\n{key}.url = "https://x.example"\n{key}.http_headers.A = "b" # end\n',
        f'[mcp_servers.{key}.http_headers]\nA = "b"\n[mcp_servers.{key}]\nbearer_token_env_var = "T"\n'
        f'url = "https://x.example"\n',
        f'[mcp_servers]\n{key} = {{ url = "https://x.example", env_http_headers = {{ A = "V" }} }}\n',
    ]
    before = draw(st.sampled_from(["", "x = '''\n[mcp_servers.a]\n'''\n", "a = 1979-05-27 07:32:00\nb = [{c = 1}]\n"]))
    text = before + draw(st.sampled_from(forms))
    return text.replace("\n", draw(LINE_ENDS)), name


@settings(max_examples=60, deadline=None)
@given(toml_documents())
def test_any_toml_is_the_same_after_wrapping(made: tuple[str, str]) -> None:
    tomllib.loads(made[0])
    check(made[0], "toml", "codex", made[1])


def test_the_own_state_is_private(tmp_path: Path) -> None:
    Wrapping(tmp_path, "cursor", STDIO).wrap()
    assert os.stat(tmp_path / "state" / wrapped_files.FILE).st_mode & 0o777 == 0o600
