"""The pipe of ``mcphost tap``: lines, exit codes, and the same bytes on both sides."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcphost.cli.between import fast_options
from mcphost.cli.parser import parse
from mcphost.shim import LineCutter, options_of

HOSTILE = b'{"a": 1}\r\nnot JSON\n[{"id": 1}]\n\xff\xfe\x00\xe2\x80\xa8\n\n' + b"x" * 300_000 + b"\nhalf a line"


def tapped(tmp_path: Path, *command: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "MCPHOST_STATE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    words = (sys.executable, "-m", "mcphost", "tap", "--", *command)
    return subprocess.run(words, input=sent, capture_output=True, env=env, timeout=60, check=False)


def test_lines_over_the_limit_come_in_pieces() -> None:
    cutter = LineCutter(4)
    cut = [*cutter.feed(b"ab\ncdef"), *cutter.feed(b"ghi\nj"), *cutter.rest()]
    assert cut == [(b"ab\n", True), (b"cdef", False), (b"ghi\n", False), (b"j", True)]


@pytest.mark.parametrize("words", [["--name"], ["--nmae", "x", "--", "cat"], ["cat"], ["--"], ["--help"]])
def test_wrong_usage_is_left_to_the_parser(words: list[str]) -> None:
    assert options_of(words, tuple(fast_options("tap"))) is None


def test_the_parser_reads_what_the_fast_path_reads() -> None:
    words = ["--name", "n", "--as=a", "--state", "s", "--into", "i", "--config", "c", "--", "cat", "--name", "x"]
    found = options_of(words, tuple(fast_options("tap")))
    assert found is not None
    parsed = vars(parse(["tap", *words]))
    names = fast_options("tap")
    assert {names[name]: value for name, value in found[0].items()}.items() <= parsed.items()
    assert found[1] == parsed["program"]


def test_bytes_pass_unchanged_and_leave_a_private_file(tmp_path: Path) -> None:
    done = tapped(tmp_path, "cat", sent=HOSTILE)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(HOSTILE).digest()
    (spool,) = (tmp_path / "taps").iterdir()
    assert spool.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("command", "code"),
    [(["sh", "-c", "echo e >&2; exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["nonexistent-program"], 127)],
)
def test_the_exit_code_is_that_of_a_shell(command: list[str], code: int, tmp_path: Path) -> None:
    assert tapped(tmp_path, *command).returncode == code
