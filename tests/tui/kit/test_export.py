from __future__ import annotations

import os
import stat
from datetime import datetime
from pathlib import Path

import pytest

from mcphost.errors import NotDone
from mcphost.tui.kit.export import extension, file_name, save

WHEN = datetime(2026, 11, 3, 14, 2, 11)


@pytest.mark.hostile("C14")
@pytest.mark.requirement("RES-16")
@pytest.mark.parametrize(
    ("server", "tool", "mime_type", "name"),
    [
        ("files", "read_file", "image/png", "files-read_file-20261103-140211.png"),
        ("../../.bashrc", "/etc/passwd", "text/plain", "bashrc-etc-passwd-20261103-140211.txt"),
        ("CON", "a\0b\n‮", "../../x", "CON-a-b-20261103-140211.bin"),
        ("", "…", "text/html; charset=utf-8", "server-result-20261103-140211.txt"),
        ("-rf", "x" * 300, "application/x-sh", f"rf-{'x' * 40}-20261103-140211.bin"),
        ("a.b", "C:\\x", "IMAGE/JPEG;q=1", "a-b-C-x-20261103-140211.jpg"),
    ],
)
def test_a_name_is_made_of_plain_letters_and_a_known_extension(
    server: str, tool: str, mime_type: str, name: str
) -> None:
    """Nothing a server says leaves the folder, hides the file or makes it executable."""
    assert file_name(server, tool, WHEN, mime_type) == name


def test_types_that_run_or_open_in_a_browser_get_a_harmless_extension() -> None:
    assert {extension(kind) for kind in ("text/html", "text/x-shellscript", "text/javascript")} == {".txt"}
    assert {extension(kind) for kind in ("application/x-msdownload", "", "png", "image/png/../../sh")} == {".bin"}


@pytest.mark.hostile("C14")
def test_a_file_is_never_replaced_nor_runnable(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        paths = [save(tmp_path, "a-b.png", content) for content in (b"1", b"2", b"3")]
    finally:
        os.umask(old_mask)
    assert [path.name for path in paths] == ["a-b.png", "a-b-2.png", "a-b-3.png"]
    assert [path.read_bytes() for path in paths] == [b"1", b"2", b"3"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


@pytest.mark.hostile("C14")
def test_a_link_waiting_under_the_name_is_not_followed(tmp_path: Path) -> None:
    """Neither a link that leads somewhere nor a dangling one."""
    target = tmp_path / "precious"
    target.write_bytes(b"mine")
    (tmp_path / "a.txt").symlink_to(target)
    (tmp_path / "a-2.txt").symlink_to(tmp_path / "not yet")
    assert save(tmp_path, "a.txt", b"theirs") == tmp_path / "a-3.txt"
    assert target.read_bytes() == b"mine"
    assert not (tmp_path / "not yet").exists()


@pytest.mark.requirement("RES-16")
@pytest.mark.parametrize("name", ["../a", "/etc/a", "", ".", "..", "a\0b"])
def test_a_name_that_is_more_than_a_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotDone, match="not a plain file name"):
        save(tmp_path, name, b"")


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotDone, match=r"nothing was saved: .*missing: No such file or directory; choose another"):
        save(tmp_path / "missing", "a.txt", b"")
    with pytest.raises(NotDone, match="Not a directory"):
        save(tmp_path / "file", "a.txt", b"")
    with pytest.raises(NotDone, match="nothing was saved"):
        save(tmp_path, "x" * 300, b"")
