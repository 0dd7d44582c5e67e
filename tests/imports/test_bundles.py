"""Bundles: hostile archives are refused whole, and an honest one runs as its manifest says."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.config import references_within
from mcphost.config.servers_file import validated_server
from mcphost.errors import ConfigError
from mcphost.imports import bundles
from mcphost.imports.bundles import Bundle, Machine, copy_bundle, discard, open_bundle, read_bundle, unpack
from mcphost.imports.found import FoundServer
from mcphost.imports.inputs import fill_in
from tests.imports.bundle_files import MANIFEST, archive
from tests.npm import NETWORK, programs

LINUX = Machine(Path("/home/ada"), "linux", lambda program: program in ("node", "uv", "python3"))


def manifest(server: Any = None, **more: Any) -> dict[str, Any]:
    return {**MANIFEST, **({} if server is None else {"server": {**MANIFEST["server"], **server}}), **more}


def configured(**config: Any) -> dict[str, Any]:
    return {"mcp_config": {"command": "node", **config}}


def opened(content: bytes, sha256: str = "") -> Bundle:
    return open_bundle(io.BytesIO(content), sha256)


def entry(name: str, mode: int = 0o644, **more: Any) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    made.compress_type = zipfile.ZIP_DEFLATED
    for key, value in more.items():
        setattr(made, key, value)
    return made


def described(about: Any, machine: Machine = LINUX, *files: str) -> FoundServer:
    content = archive(*((name, b"x") for name in files), about=about)
    return read_bundle(opened(content), Path("/state/bundles"), "/tmp/x.mcpb", machine)


def folder_of(content: bytes) -> str:
    return f"/state/bundles/tide-tables-1.2.0-{hashlib.sha256(content).hexdigest()[:32]}"


def test_a_bundle_runs_from_a_folder_that_is_named_by_its_hash() -> None:
    content = archive(("server/index.js", b"x"))
    server = read_bundle(opened(content), Path("/state/bundles"), "/tmp/x.mcpb", LINUX)
    folder = folder_of(content)
    assert server.table == {"command": "node", "args": [f"{folder}/server/index.js"], "cwd": folder}
    assert (server.name, server.description) == ("tide-tables", "Tides of all harbours")
    assert (server.origin.source, server.origin.digest) == ("bundle", hashlib.sha256(content).hexdigest())
    assert [(note.key, note.reason) for note in server.notes] == [("signature", "not signed")]
    assert folder in validated_server("x", server.table).identity
    other = read_bundle(opened(archive(("server/index.js", b"y"))), Path("/state/bundles"), "", LINUX)
    assert validated_server("x", other.table).identity != validated_server("x", server.table).identity


def test_unpacked_files_are_private_and_few_are_executable(tmp_path: Path) -> None:
    about = manifest({"type": "binary", "entry_point": "bin/run", "mcp_config": {"command": "bin/run"}})
    content = archive(("bin/run", b"#!/bin/sh\n"), (entry("bin/other", 0o777), b"x"), ("empty/", b""), about=about)
    bundle = opened(content)
    folder = unpack(bundle, tmp_path / "bundles")
    assert folder == bundle.folder(tmp_path / "bundles")
    modes = {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert modes == {
        "bin": 0o700,
        "bin/run": 0o700,
        "bin/other": 0o600,
        "empty": 0o700,
        "manifest.json": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert unpack(opened(content), tmp_path / "bundles") == folder
    assert sorted(path.name for path in (tmp_path / "bundles").iterdir()) == [folder.name]
    server = read_bundle(bundle, tmp_path / "bundles", "", LINUX)
    assert server.table["command"] == f"{folder}/bin/run"


def test_the_overrides_of_this_platform_apply() -> None:
    config = {
        "command": "server/run",
        "args": ["--config", "server/config.json", "${HOME}${/}x", "${DOCUMENTS}", "$${literal} ${unknown}"],
        "env": {"A": "a", "PLACE": "${__dirname}/lib"},
        "platform_overrides": {"win32": {"command": "run.exe"}, "linux": {"env": {"B": "b"}}},
    }
    server = described(manifest({"type": "binary", "mcp_config": config}))
    folder = server.table["cwd"]
    assert server.table == {
        "command": f"{folder}/server/run",
        "args": ["--config", "server/config.json", "/home/ada/x", "/home/ada/Documents", "$$${literal} $${unknown}"],
        "env": {"B": "b"},
        "cwd": folder,
    }
    there = described(manifest({"type": "binary", "mcp_config": config}), Machine(Path("/Users/ada"), "darwin"))
    assert there.table["env"] == {"A": "a", "PLACE": f"{there.table['cwd']}/lib"}


def test_user_configuration_is_asked_for() -> None:
    about = manifest(
        configured(
            args=["${user_config.folders}", "--limit", "${user_config.limit}"],
            env={"KEY": "${user_config.api_key}", "LOUD": "${user_config.loud}"},
        ),
        user_config={
            "folders": {
                "type": "directory",
                "title": "Folders",
                "description": "which to offer",
                "required": True,
                "multiple": True,
                "default": ["${HOME}/Desktop", "${DOCUMENTS}"],
            },
            "limit": {"type": "number", "title": "Limit", "description": "", "default": 10, "min": 1, "max": 100},
            "api_key": {"type": "string", "title": "Key", "description": "", "sensitive": True, "required": True},
            "loud": {"type": "boolean", "title": "Loud", "description": "", "default": False},
        },
    )
    server = described(about)
    asked = {each.id: each for each in server.inputs}
    assert asked["folders"].description == "Folders: which to offer (a folder)"
    assert asked["limit"].description == "Limit (a number from 1 to 100)"
    assert asked["api_key"].secret
    assert asked["loud"].choices == ("true", "false")
    filled = fill_in(server.table, server.inputs, {"api_key": "${keyring:t.api_key}"})
    assert filled["args"] == ["/home/ada/Desktop", "/home/ada/Documents", "--limit", "10"]
    assert filled["env"] == {"KEY": "${keyring:t.api_key}", "LOUD": "false"}


def test_a_bundle_of_uv_needs_no_configuration() -> None:
    about = manifest(manifest_version="0.4")
    about["server"] = {"type": "uv", "entry_point": "src/server.py"}
    server = described(about)
    folder = server.table["cwd"]
    assert (server.table["command"], server.table["args"]) == ("uv", ["run", "--directory", folder, "src/server.py"])


def test_the_old_name_of_the_manifest_version_is_enough() -> None:
    about = {key: value for key, value in manifest(dxt_version="0.1").items() if key != "manifest_version"}
    assert described(about).refusal == ""


def test_python_may_be_called_python3_and_a_missing_program_is_noted() -> None:
    server = described(manifest(configured(command="python")))
    assert server.table["command"] == "python3"
    server = described(manifest(configured(command="deno"), compatibility={"runtimes": {"node": ">=18", "evil": "x"}}))
    assert {note.key: note.reason for note in server.notes} == {
        "signature": "not signed",
        "runtimes": "it needs node >=18",
        "command": "deno is not installed here",
    }


def test_a_program_of_the_bundle_comes_before_one_on_the_path() -> None:
    server = described(manifest(configured(command="node")), LINUX, "node")
    assert server.table["command"] == f"{server.table['cwd']}/node"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        (manifest(compatibility={"platforms": ["darwin", "win32"]}), "does not run on linux, only on darwin, win32"),
        (manifest({"type": "wasm"}), "no kind of server that is known"),
        (manifest({"type": "\x1b[2J"}), "␛[2J"),
        (manifest({"mcp_config": {"command": ""}}), "names no command"),
        (manifest({"mcp_config": None}), "names no command"),
        (manifest({"mcp_config": {"command": "../../bin/sh"}}), "leads out of the bundle"),
        (manifest({"mcp_config": {"command": "${__dirname}/../../x"}}), "leads out of the bundle"),
        (manifest(configured(args="x")), "args in its manifest is not a list of texts"),
        (manifest(configured(args=[1])), "args in its manifest is not a list of texts"),
        (manifest(configured(env=["x"])), "env in its manifest is not a table of texts"),
        (manifest(configured(args=["${user_config.x}"])), "uses user_config.x, and does not describe it"),
        (manifest(configured(args=["$${user_config.x}"]), user_config={"x": {}}), "a $ is right before"),
    ],
)
def test_a_manifest_that_cannot_be_followed_is_refused_in_words(about: Any, words: str) -> None:
    server = described(about)
    assert words in server.refusal
    assert (server.table, server.inputs) == ({}, ())


SLIPS = [
    "../x",
    "a/../../x",
    "/etc/passwd",
    "a//b",
    "./a",
    "a/./b",
    "..",
    "a\\..\\b",
    "C:\\x",
    "c:x",
    "a\nb",
    "a\x1b[2J",
]


@pytest.mark.parametrize("name", SLIPS)
def test_a_name_that_leads_elsewhere_refuses_the_whole_bundle(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"written elsewhere|no file should have") as raised:
        opened(archive((entry(name), b"x")))
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_devices_are_refused(mode: int) -> None:
    with pytest.raises(ConfigError, match="a link or a device: x"):
        opened(archive((entry("x", mode), b"/etc/passwd")))


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "A"), ("a", "a/b"), ("a/b", "a"), ("\u00e9", "e\u0301"), ("manifest.json",)]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_meet_on_some_disk_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="twice"):
        opened(archive(*((entry(name), b"x") for name in names)))


def test_a_bomb_is_refused_before_anything_of_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = archive(*((f"{number}", b"\0" * 10_000_000) for number in range(6)))
    assert len(bomb) < 100_000
    with pytest.raises(ConfigError, match="would become 60 MB of files, which is too much"):
        opened(bomb)
    monkeypatch.setattr(bundles, "MOST_ENTRIES", 3)
    with pytest.raises(ConfigError, match="more than 3 files"):
        opened(archive(*((str(number), b"") for number in range(4))))


def test_a_size_that_is_a_lie_ends_the_unpacking(tmp_path: Path) -> None:
    content = bytearray(archive(("big", b"\0" * 1_000_000)))
    for magic, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = content.rfind(magic) if magic == b"PK\x01\x02" else content.rfind(magic, 0, content.find(b"PK\x01\x02"))
        content[place + at : place + at + 4] = struct.pack("<L", 10)
    with pytest.raises(ConfigError):
        unpack(opened(bytes(content)), tmp_path / "bundles")
    assert list((tmp_path / "bundles").iterdir()) == []


def patched(content: bytes, magic: bytes, at: int, value: bytes) -> bytes:
    changed = bytearray(content)
    place = changed.rfind(magic)
    changed[place + at : place + at + len(value)] = value
    return bytes(changed)


CENTRAL, END = b"PK\x01\x02", b"PK\x05\x06"
GOOD = archive(("a", b"some words"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a ZIP"),
        (b"hello", "not a ZIP"),
        (b"#!/bin/sh\n" + GOOD, "something precedes it"),
        (GOOD[:-30], "its end is missing"),
        (GOOD[: len(GOOD) // 2], "its end is missing"),
        (patched(GOOD, CENTRAL, 8, b"\x01\x00"), "is encrypted: a"),
        (patched(GOOD, CENTRAL, 10, b"\x0e\x00"), "compressed in a way"),
        (patched(GOOD, END, 12, b"\xff\xff\xff\xff"), "names of too many bytes"),
        (patched(GOOD, END, 10, b"\xff\xff"), "more than 50,000 files"),
        (patched(GOOD, END, 16, b"\xff\xff\x00\x00"), "no readable bundle|manifest"),
        (patched(GOOD, CENTRAL, 42, b"\x05\x00\x00\x00"), "no readable bundle|cannot be unpacked|cannot be read"),
        (archive(("a", b"x"), about=None), "holds no manifest.json"),
        (archive(about=b"[]"), "is not an object"),
        (archive(about=b"{"), "not valid JSON"),
        (archive(about=b"\xff"), "not UTF-8"),
        (archive(about=b"[" * 100_000), "manifest.json that"),
        (archive(about=b" " * 2_000_000), "larger than 1.0 MB"),
        (archive(about={"name": "x", "version": 1, "server": {}}), "without version"),
        (archive(about={"name": "x", "version": "1"}), "without server"),
        (archive(about={"version": "1", "server": {}}), "without name"),
    ],
)
def test_a_damaged_bundle_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        unpack(opened(content), tmp_path / "bundles")


def test_a_damaged_stream_is_found_when_it_is_unpacked(tmp_path: Path) -> None:
    content = bytearray(archive(("a", os.urandom(5000))))
    content[len(content) // 2] ^= 0xFF
    bundle = opened(bytes(content))
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        unpack(bundle, tmp_path / "bundles")
    assert list((tmp_path / "bundles").iterdir()) == []


def test_the_directory_of_a_larger_archive_is_not_read() -> None:
    locator = b"PK\x06\x07" + bytes(16)
    at = GOOD.rfind(END)
    with pytest.raises(ConfigError, match="too many bytes"):
        opened(GOOD[:at] + locator + GOOD[at:])


@given(st.data())
def test_any_damage_is_an_error_and_nothing_else(data: st.DataObject) -> None:
    content = bytearray(archive(("a/b", b"words " * 20), (entry("c", 0o755), b"x")))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        bundle = opened(bytes(content))
        server = read_bundle(bundle, Path("/state"), "", LINUX)
    except ConfigError:
        return
    assert list(references_within(fill_in(server.table, server.inputs, {}))) == []


def test_the_announced_hash_must_be_that_of_the_bytes() -> None:
    digest = hashlib.sha256(GOOD).hexdigest()
    assert opened(GOOD, digest).sha256 == digest
    with pytest.raises(ConfigError, match=f"has the SHA-256 {digest}, and {'a' * 64} was announced"):
        opened(GOOD, "a" * 64)


def signed(content: bytes) -> bytes:
    return content + b"MCPB_SIG_V1" + struct.pack("<L", 4) + b"\0der" + b"MCPB_SIG_END"


@pytest.mark.parametrize("comment", [0, 31])
def test_a_signature_is_told_and_not_believed(comment: int, tmp_path: Path) -> None:
    content = signed(patched(GOOD, END, 20, struct.pack("<H", comment)))
    bundle = opened(content)
    assert (bundle.signature_text, bundle.sha256) == ("signed, not verified", hashlib.sha256(content).hexdigest())
    assert (unpack(bundle, tmp_path) / "a").read_bytes() == b"some words"
    assert not opened(archive(("a", b"MCPB_SIG_V1MCPB_SIG_END"))).signed
    assert not opened(signed(GOOD) + b"x").signed


def test_a_bundle_is_read_from_a_copy(tmp_path: Path) -> None:
    (tmp_path / "x.mcpb").write_bytes(GOOD)
    with copy_bundle(tmp_path / "x.mcpb", tmp_path / "bundles") as copy:
        assert open_bundle(copy).name == "tide-tables"


@pytest.mark.parametrize(("name", "words"), [("pipe", "not a regular file"), ("none", "No such file")])
def test_only_a_regular_file_is_copied(tmp_path: Path, name: str, words: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=words):
        copy_bundle(tmp_path / name, tmp_path / "bundles")


def test_a_planted_folder_is_not_used(tmp_path: Path) -> None:
    bundle = opened(GOOD)
    (tmp_path / "bundles").mkdir()
    bundle.folder(tmp_path / "bundles").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="not a folder of yours"):
        unpack(bundle, tmp_path / "bundles")


def test_only_an_unpacked_bundle_is_discarded(tmp_path: Path) -> None:
    folder = unpack(opened(GOOD), tmp_path / "bundles")
    (tmp_path / "notes").mkdir()
    discard(tmp_path / "notes")
    discard(folder)
    assert (tmp_path / "notes").exists()
    assert list((tmp_path / "bundles").iterdir()) == []


def test_names_of_a_bundle_cannot_lead_out_of_the_folder_of_bundles(tmp_path: Path) -> None:
    bundle = opened(archive(about=manifest(name="../../x", version="/etc")))
    assert bundle.folder(tmp_path).parent == tmp_path
    assert bundle.folder(tmp_path).name.startswith("x-etc-")


@pytest.mark.slow
def test_a_bundle_of_the_real_packer_is_read_and_its_program_runs(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "server").mkdir(parents=True)
    (source / "manifest.json").write_text(json.dumps(MANIFEST))
    (source / "server" / "index.js").write_text("console.log(process.cwd())")
    packed = tmp_path / "tides.mcpb"
    program = programs() / ".bin" / "mcpb"
    for words in (["pack", str(source), str(packed)], ["sign", str(packed), "--self-signed"]):
        done = subprocess.run([program, *words], env=NETWORK, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        with copy_bundle(packed, tmp_path / "bundles") as copy:
            bundle = open_bundle(copy)
            assert bundle.signed is (words[0] == "sign")
            folder = unpack(bundle, tmp_path / "bundles")
            server = read_bundle(bundle, tmp_path / "bundles", str(packed), Machine(tmp_path))
        command = [server.table["command"], *server.table["args"]]
        ran = subprocess.run(command, cwd=server.table["cwd"], capture_output=True, text=True, timeout=60, env=NETWORK)
        assert ran.stdout.strip() == os.path.realpath(folder)
