"""The desktop's opener gets web addresses, as one argument, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcphost.host.desktop import open_page


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A desktop whose opener writes down its arguments; gives all of them."""
    record, opener = tmp_path / "opened", tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >> "$RECORD"\n')
    opener.chmod(0o700)
    monkeypatch.setenv("RECORD", str(record))
    monkeypatch.setenv("PATH", f"{opener.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.delenv("SSH_TTY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    return lambda: record.read_text().splitlines() if record.exists() else []


@pytest.mark.hostile("O01", "O02", "F06")
@pytest.mark.requirement("SEC-11")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "vscode://file/x",
        "--help",
        "-https://example.com",
        " https://example.com",
        "https://example.com/a b",
        "https://example.com/\n--flag",
        "https://example.com/\x1b[2J",
        "https://ex\u0430mple.com/",
        "HTTPS",
        "https:example.com",
        "",
    ],
)
async def test_what_is_no_address_of_the_web_is_given_to_no_program(url: str, opened: Callable[[], list[str]]) -> None:
    assert await open_page(url) == "its address is not one that a browser should be given"
    assert opened() == []


@pytest.mark.hostile("O02")
@pytest.mark.requirement("SEC-11")
@pytest.mark.parametrize("url", ["https://example.com/?a=$(id)&b=`id`;c='\"|%action", "http://127.0.0.1:1/"])
async def test_an_address_is_one_argument_and_goes_through_no_shell(url: str, opened: Callable[[], list[str]]) -> None:
    assert await open_page(url) == ""
    assert opened() == [url]


async def test_an_opener_that_fails_is_a_reason(opened: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "bin" / "xdg-open").write_text("#!/bin/sh\nexit 3\n")
    assert "ended with 3" in await open_page("https://example.com/")
