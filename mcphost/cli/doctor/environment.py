"""Checks what mcphost runs in: Python, the system, the terminal, the locale, folders and proxies."""

from __future__ import annotations

import codecs
import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mcphost import __version__
from mcphost.cli.doctor.findings import Finding, ok, problem, warning
from mcphost.places import home_folder

COLUMNS, ROWS = 80, 24
"""The least size of a terminal that every screen fits in."""

DUMB: Final = ("", "dumb", "unknown")
"""Values of TERM with which no screen can be shown."""

SET_HOME: Final = "export HOME=/a/folder/of/yours"

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


class TerminalFacts(NamedTuple):
    """The size of the terminal, and the encoding of what commands write to it."""

    columns: int
    rows: int
    encoding: str = "utf-8"


def check_environment(env: Mapping[str, str], terminal: TerminalFacts | None) -> Iterator[Finding]:
    """Check everything but mcphost's own files and servers. ``terminal`` is None without a terminal."""
    yield _python()
    yield _system()
    yield from _terminal(env, terminal)
    yield _locale(env, terminal)
    yield from _home(env)
    yield from _proxies(env)


def _python() -> Finding:
    return ok("python", f"mcphost {__version__} on {platform.python_implementation()} {platform.python_version()}")


def _system() -> Finding:
    text = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if os.name == "nt":
        return problem("system", f"{text}: mcphost runs on Linux and macOS", "wsl --install")
    return ok("system", text)


def _terminal(env: Mapping[str, str], terminal: TerminalFacts | None) -> Iterator[Finding]:
    term = env.get("TERM", "")
    if terminal is None:
        yield ok("terminal", "none; the screen needs one, commands do not")
        return
    if term in DUMB:
        fix = "export TERM=xterm-256color"
        yield problem("terminal", f"TERM={term or '(not set)'}: the screen cannot be shown", fix)
        return
    named = " ".join(filter(None, [term, env.get("TERM_PROGRAM", "")]))
    text = f"{named}, {terminal.columns}x{terminal.rows}, {_colors(env)}"
    if terminal.columns < COLUMNS or terminal.rows < ROWS:
        yield warning("terminal", f"{text}: smaller than {COLUMNS}x{ROWS}", f"printf '\\e[8;{ROWS};{COLUMNS}t'")
    else:
        yield ok("terminal", text)
    yield from _multiplexer(env)


def _colors(env: Mapping[str, str]) -> str:
    if env.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "true colour"
    return "256 colours" if "256" in env["TERM"] else "16 colours"


def _multiplexer(env: Mapping[str, str]) -> Iterator[Finding]:
    """Programs between mcphost and the terminal."""
    name = "tmux" if env.get("TMUX") else "screen" if env.get("STY") else ""
    if not name:
        return
    text = f"{name} shows pictures in cells only"
    copies = _tmux_option(env, "set-clipboard") if name == "tmux" else ""
    if copies == "off":
        yield warning(name, "what you copy stays in tmux (set-clipboard off)", "tmux set -s set-clipboard external")
    elif copies:
        text = f"{text}; what you copy goes to its buffer and to the terminal's clipboard"
    if env.get("COLORTERM") or env.get("NO_COLOR"):
        yield ok(name, text)
    else:
        yield warning(name, f"{text}, and true colour is off within it", "export COLORTERM=truecolor")


TMUX_SECONDS: Final = 2.0
"""For tmux, which answers within milliseconds."""


def _tmux_option(env: Mapping[str, str], name: str) -> str:
    """Return the value of an option of the tmux around this program; empty if it does not say."""
    try:
        command = ["tmux", "show-options", "-sv", name]
        asked = subprocess.run(
            command, env={**os.environ, **env}, capture_output=True, text=True, timeout=TMUX_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def _locale(env: Mapping[str, str], terminal: TerminalFacts | None) -> Finding:
    if terminal is not None and codecs.lookup(terminal.encoding).name != "utf-8":
        named = next((name for name in ("PYTHONIOENCODING", "PYTHONUTF8") if env.get(name)), None)
        text = f"commands write {terminal.encoding}, which lacks marks and letters; the screen writes UTF-8"
        return warning("locale", text, f"unset {named}" if named else "export LC_ALL=C.UTF-8")
    chosen = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(name)), None)
    value = env.get(chosen, "") if chosen else ""
    utf8 = "utf8" in value.lower().replace("-", "") or sys.platform in ("darwin", "win32")
    if utf8:
        return ok("locale", f"{chosen}={value}" if chosen else "UTF-8")
    what = f"{chosen}={value}" if chosen else "neither LC_ALL, LC_CTYPE nor LANG is set"
    return warning("locale", f"{what}: a terminal may show marks and letters wrong", "export LC_ALL=C.UTF-8")


def _home(env: Mapping[str, str]) -> Iterator[Finding]:
    home = home_folder()
    if home is None or not home.is_dir():
        where = "not known" if home is None else f"{home}, which is not a folder"
        yield problem("home", f"your home folder is {where}", SET_HOME)


def _proxies(env: Mapping[str, str]) -> Iterator[Finding]:
    found = [(name, value) for each in _PROXIES for name in (each, each.lower()) if (value := env.get(name))]
    bypass = env.get("NO_PROXY") or env.get("no_proxy")
    named = [f"{name}={_without_password(value)}" for name, value in found]
    for name, value in found:
        scheme = urlsplit(value if "://" in value else f"http://{value}").scheme
        if scheme not in ("http", "https"):
            text = f"{name} names a {scheme} proxy, and only http and https proxies are spoken to"
            yield problem("proxy", text, f"unset {name}")
    if named:
        yield ok("proxy", ", ".join([*named, f"not for {bypass}" if bypass else ""]).removesuffix(", "))
    else:
        yield ok("proxy", "none is set")


def _without_password(proxy: str) -> str:
    """A proxy's address without the user's name and password."""
    before, at, host = proxy.rpartition("@")
    scheme = before.partition("://")[0] if "://" in before else ""
    return f"{f'{scheme}://' if scheme else ''}•••@{host}" if at else proxy


FREE_BYTES: Final = 100_000_000
"""Bytes of free space below which a warning is due: an audit log grows by some megabytes in a week."""

_DAMAGED: Final = re.compile(r".+\.damaged-\d+")
_TEMPORARY: Final = re.compile(r"\..+\.toml\.[a-z0-9_]{8}")
"""Names of files that a crash leaves when it interrupts a replacement."""


def state_folder_findings(folder: Path) -> Iterator[Finding]:
    """Check whether the state folder, which exists, can be used: its owner, its rights and its free space."""
    topic, quoted = "state folder", shlex.quote(str(folder))
    try:
        found = folder.stat()
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield problem(topic, f"{folder} cannot be written: {error.strerror}", f"chmod 700 {quoted}")
        return
    if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
        yield problem(topic, f"{folder} can be read by others", f"chmod 700 {quoted}")
    elif free < FREE_BYTES:
        yield warning(topic, f"{folder}: {free // 1_000_000} MB are free on its disk", f"du -sh {quoted}/*")
    else:
        yield ok(topic, str(folder))


def leftovers(folder: Path, bundles_in_use: Collection[str]) -> Iterator[Finding]:
    """Find files that are not needed any more.

    ``bundles_in_use`` are texts of the configuration that may name an unpacked bundle.
    """
    found = sorted(_entries(folder))
    yield from _leftover([each for each in found if _DAMAGED.fullmatch(each.name)], "kept of a damaged file")
    yield from _leftover(
        [each for each in found if _TEMPORARY.fullmatch(each.name)], "left of a file that was being written"
    )
    unused = [
        each for each in sorted(_entries(folder / "bundles")) if not any(each.name in text for text in bundles_in_use)
    ]
    yield from _leftover(unused, "an unpacked bundle that no server uses")


def _leftover(paths: list[Path], what: str) -> Iterator[Finding]:
    for path in paths:
        yield warning("leftover", f"{path}: {what}", f"rm -r {shlex.quote(str(path))}")


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
