"""The servers with skills do what their modes say, in both eras."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from skills import FILES, SCHEME, Folder, SkillServer
from skills_hostile import MODES, TIDES, spoiled

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def asked(server: SkillServer, method: str, **params: Any) -> Any:
    response = server.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert response is not None
    return response.get("result") or response["error"]["code"]


def content(server: SkillServer, uri: str) -> bytes:
    (read,) = asked(server, "resources/read", uri=uri)["contents"]
    return str(read["text"]).encode()


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("many-skills", "long-description")])
def test_a_hostile_mode_answers(mode: str) -> None:
    assert asked(spoiled(mode), "server/discover", **META)["resultType"] == "complete"


def test_the_entries_come_in_pages_and_describe_the_files() -> None:
    server = SkillServer()
    first = asked(server, "skills/list")
    second = asked(server, "skills/list", cursor=first["nextCursor"])
    assert len(first["skills"]) == len(second["skills"]) == 2
    (main, *_) = first["skills"][0]["resources"]
    assert main["digest"] == f"sha256:{hashlib.sha256(FILES['tides/SKILL.md']).hexdigest()}"


def test_an_unpublished_edit_changes_the_file_alone() -> None:
    server = SkillServer()
    entry = asked(server, "skills/get", uri=TIDES)
    asked(server, "tools/call", name="edit", arguments={"uri": TIDES, "text": "x", "published": False})
    assert asked(server, "skills/get", uri=TIDES) == entry
    assert content(server, TIDES) == b"x"


def test_a_folder_is_served_as_it_is_now(tmp_path: Any) -> None:
    (tmp_path / "knots").mkdir()
    main = tmp_path / "knots" / "SKILL.md"
    main.write_bytes(FILES["tides/SKILL.md"])
    server = SkillServer(Folder(str(tmp_path)))
    before = asked(server, "skills/get", uri=f"{SCHEME}knots/SKILL.md")
    main.write_bytes(main.read_bytes() + b"more")
    assert asked(server, "skills/get", uri=f"{SCHEME}knots/SKILL.md") != before


def test_reads_are_counted() -> None:
    server = SkillServer()
    content(server, TIDES)
    (said,) = asked(server, "tools/call", name="reads")["content"]
    assert json.loads(said["text"]) == {TIDES: 1}
