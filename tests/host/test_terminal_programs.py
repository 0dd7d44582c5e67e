from __future__ import annotations

import signal
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from mcphost.errors import NotDone
from mcphost.host.terminal_programs import EditedFile, Which, editor_command, pager_command, run_on_terminal


def installed(*programs: str) -> Which:
    return lambda name: f"/bin/{name}" if name in programs else None


def test_visual_comes_before_editor_and_may_have_arguments() -> None:
    found = editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}, installed("code", "vi"))
    assert found == ["code", "--wait"]


def test_without_a_variable_an_installed_editor_is_taken() -> None:
    assert editor_command({}, installed("nano")) == ["nano"]


def test_a_missing_editor_is_named_with_its_variable() -> None:
    with pytest.raises(NotDone, match=r"\$EDITOR is emacs -nw, which is not installed here; set it to your editor"):
        editor_command({"EDITOR": "emacs -nw"}, installed("vi"))


def test_an_editor_with_an_open_quote_is_refused() -> None:
    with pytest.raises(NotDone, match=r"\$EDITOR cannot be read"):
        editor_command({"EDITOR": "'vi"}, installed("vi"))


def test_without_any_editor_the_variable_to_set_is_named() -> None:
    with pytest.raises(NotDone, match=r"there is no editor here; set \$EDITOR to yours"):
        editor_command({}, installed())


def test_less_keeps_colours_unless_the_user_has_a_pager() -> None:
    assert pager_command({}, installed("less")) == ["less", "-R"]
    assert pager_command({"PAGER": "bat -p"}, installed("bat")) == ["bat", "-p"]


def test_only_the_user_can_read_what_is_edited() -> None:
    file = EditedFile("{}", ".json")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.path, file.path.parent)]
    file.remove()
    assert modes == [0o600, 0o700]
    assert file.path.suffix == ".json"
    assert not file.path.parent.exists()


def edited(data: bytes, most: int = 100) -> str | None:
    file = EditedFile("as it was", ".md")
    try:
        file.path.write_bytes(data)
        return file.read(most)
    finally:
        file.remove()


def test_half_a_character_is_a_sentence_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(NotDone, match="holds half a character"):
        EditedFile("a\ud800", ".txt")
    assert list(tmp_path.glob("mcphost-*")) == []


def test_the_line_end_that_editors_add_is_left_out() -> None:
    assert edited(b"two\r\nlines\n") == "two\nlines"


def test_a_saved_file_without_a_change_is_none() -> None:
    assert edited(b"as it was\n") is None


@pytest.mark.parametrize(("data", "why"), [(b"\xff\xfe", "is not UTF-8"), (b"x" * 101, "is longer than 100")])
def test_what_cannot_be_taken_is_kept(data: bytes, why: str) -> None:
    with pytest.raises(NotDone, match=why) as refused:
        edited(data)
    path = Path(str(refused.value).rpartition(" ")[2])
    assert path.read_bytes() == data
    path.unlink()
    path.parent.rmdir()


def test_a_deleted_file_is_a_sentence() -> None:
    file = EditedFile("as it was", ".md")
    file.path.unlink()
    with pytest.raises(NotDone, match="the edited file cannot be read: No such file"):
        file.read(100)
    file.remove()


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    file = EditedFile("as it was", ".md")
    file.path.unlink()
    file.path.symlink_to(tmp_path / "other")
    with pytest.raises(NotDone, match="cannot be read"):
        file.read(100)
    file.remove()


async def test_an_interrupt_is_for_the_program_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    script = "import os, signal; os.kill(os.getppid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)"
    try:
        code = await run_on_terminal([sys.executable, "-S", "-E", "-c", f"{script}; import time; time.sleep(60)"])
        assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert not heard
    assert code != 0
