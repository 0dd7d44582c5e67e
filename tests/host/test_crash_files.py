"""A saved traceback says where it happened, and no value of anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcphost.host.crash_files import KEPT, CrashFiles, CrashLogHandler, crash_text
from mcphost.host.internal_error import internal_error, log
from tests.conftest import Until

SECRET = "canary-crash-01234567"


def fail(kind: type[Exception], token: str) -> None:
    try:
        json.loads(token)
    except ValueError as first:
        raise kind(token) from first


def raised(kind: type[Exception] = ValueError, text: str = SECRET) -> Exception:
    with pytest.raises(kind) as caught:
        fail(kind, text)
    caught.value.add_note(f"a note with {text}")
    return caught.value


def test_a_traceback_has_places_and_no_values_of_exceptions() -> None:
    group = ExceptionGroup(f"several {SECRET}", [raised(), raised(KeyError)])
    for error in (raised(), raised(KeyError), group):
        text = crash_text(error)
        assert SECRET not in text
        assert "json.decoder.JSONDecodeError" in text
        assert "in fail" in text
        assert type(error).__qualname__ in text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("None.name", "'NoneType' object has no attribute 'name'"),
        ("nothing_of_this_name", "name 'nothing_of_this_name' is not defined"),
        ("crash_text()", "crash_text() missing 1 required positional argument: 'error'"),
        ("crash_text(1, more=2)", "got an unexpected keyword argument 'more'"),
        ("len + 1", "unsupported operand type(s) for +: 'builtin_function_or_method' and 'int'"),
        ("__import__('no_such_module')", "No module named 'no_such_module'"),
        ("len()()", ""),
    ],
)
def test_what_the_interpreter_says_of_the_code_stays(code: str, said: str) -> None:
    with pytest.raises((AttributeError, NameError, TypeError, ImportError)) as caught:
        eval(code)
    assert said in crash_text(caught.value)


@pytest.mark.parametrize("text", [f"name '{SECRET}' is not defined", f"No module named 'a'\n{SECRET}", SECRET])
def test_a_text_that_only_looks_like_the_interpreters_is_left_out(text: str) -> None:
    assert SECRET not in crash_text(raised(NameError, text))


def test_an_exception_that_cannot_even_be_written_is_still_named() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError(SECRET)

    text = crash_text(Unspeakable())
    assert "Unspeakable" in text
    assert SECRET not in text


def test_a_file_is_the_users_alone_and_old_ones_go(tmp_path: Path) -> None:
    files = CrashFiles(tmp_path)
    saved = [files.save(raised()) for _ in range(KEPT + 3)]
    last = saved[-1]
    assert last is not None
    assert files.newest() == last
    assert (last.stat().st_mode & 0o777, last.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert len(list(last.parent.iterdir())) == KEPT


@pytest.mark.hostile("C07")
def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "20200101.txt").write_text("theirs")
    (tmp_path / "crashes").symlink_to(theirs)
    files = CrashFiles(tmp_path)
    assert files.save(ValueError()) is None
    assert files.newest() is None
    assert [path.name for path in theirs.iterdir()] == ["20200101.txt"]


def test_where_nothing_can_be_written_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "crashes").write_text("in the way")
    files = CrashFiles(tmp_path)
    assert files.save(raised()) is None
    assert files.newest() is None


async def test_an_error_that_a_call_ends_with_leaves_its_traceback(tmp_path: Path, until: Until) -> None:
    files = CrashFiles(tmp_path)
    handler = CrashLogHandler(lambda: files)
    log.addHandler(handler)
    level = log.level
    log.setLevel("DEBUG")
    try:
        shown = internal_error(raised())
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert SECRET not in str(shown)
    await until(lambda: files.newest() is not None and os.path.getsize(files.newest() or ""))
    assert SECRET not in (files.newest() or Path()).read_text()
