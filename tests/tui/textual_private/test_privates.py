"""Textual's private members: who may use them, and what to check when Textual changes one."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual._compositor import Compositor
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.drivers.linux_driver import LinuxDriver
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.timer import Timer
from textual.widget import Widget

from tests.structure import PACKAGE, framework_privates, read

PLACE = PACKAGE / "tui" / "textual_private"


class Private(NamedTuple):
    """Private members of Textual, the function that gives them their meaning, and its digest."""

    names: str
    source: Callable[..., Any]
    digest: str
    check: str
    """The end of the message: what to check after a change."""


CORRECTIONS = (
    Private(
        "_skip",
        Timer._run,
        "60c942a84c1a8765",
        "timer_without_skips, if a one-shot timer whose time has passed still never fires",
    ),
    Private(
        "_parse_cache",
        Stylesheet.__init__,
        "5496b02a203e14ec",
        "parse_css_once, if the CSS of 64 kinds of widgets is kept",
    ),
    Private(
        "_notifications _unnotify",
        App._unnotify,
        "0ca739607455a3aa",
        "remove_notification, and whether a public method does it",
    ),
    Private(
        "_full_map",
        Compositor.reflow,
        "a08580a81a779473",
        "_CompositorSizingNewWidgets, which compares the map of the last layout",
    ),
    Private("_full_map", Compositor.clear, "899ec58aa80a03e8", "_CompositorSizingNewWidgets.clear"),
    Private(
        "_compositor",
        Screen.__init__,
        "1f509dabafc58436",
        "whether a screen still takes its Compositor from textual.screen",
    ),
    Private(
        "_scroll_update",
        Widget._scroll_update,
        "edb9f6257285830d",
        "ScrollbarsOnLayout, whose inputs are those of this method",
    ),
    Private(
        "_scroll_update",
        ScrollView._size_updated,
        "1606ca15d9392999",
        "ScrollbarsOnLayout: does a layout still paint scrollbars?",
    ),
    Private("_dispatch_message", MessagePump._dispatch_message, "f2be0916fb2d6cb5", "ErrorBoundary and ResilientApp"),
    Private(
        "_dispatch_message",
        MessagePump._process_messages_loop,
        "8b26d5edccbb994f",
        "ErrorBoundary: does an exception end the pump?",
    ),
    Private("_handle_exception", App._handle_exception, "baea2e7f88e7ac52", "ResilientApp._handle_exception"),
    Private(
        "_fatal_error",
        App._fatal_error,
        "2474616cec7fa94d",
        "ResilientApp._fatal_error: are local variables still printed?",
    ),
    Private(
        "_display _driver",
        App._display,
        "4b78dff6669a455c",
        "ResilientApp._display: does drawing still wait for the terminal?",
    ),
    Private("_exit", App.exit, "d8c06b817ac8e36e", "ResilientApp._handle_exception, which asks whether the app exits"),
)
DRIVER = (
    Private("_file _app _loop _mouse_pixels", LinuxDriver.__init__, "671887bbf938d1d8", "Driver.__init__"),
    Private("_get_terminal_size", LinuxDriver._get_terminal_size, "7e80e59356c609c4", "Driver._get_terminal_size"),
    Private("_writer_thread", LinuxDriver.start_application_mode, "7c41f5ba11a8ef05", "Driver.start_application_mode"),
    Private(
        "_disable_mouse_support",
        LinuxDriver._disable_mouse_support,
        "101060901b67c71b",
        "Driver._disable_mouse_support",
    ),
    Private(
        "_sigtstp_application", LinuxDriver._sigtstp_application, "26c3c19ce1817e66", "Driver._sigtstp_application"
    ),
    Private(
        "_sigcont_application", LinuxDriver._sigcont_application, "1d7463a74df118a4", "Driver._sigcont_application"
    ),
    Private("_run_input_thread", LinuxDriver._run_input_thread, "d2ef22cc2c97a9eb", "Driver._run_input_thread"),
    Private("run_input_thread", LinuxDriver.run_input_thread, "d796af6d69db337d", "Driver.run_input_thread"),
    Private(
        "stop_application_mode", LinuxDriver.stop_application_mode, "9a7e99c8d4bdbd3b", "Driver.stop_application_mode"
    ),
    Private("close", LinuxDriver.close, "c32293a24c1a6b91", "Driver.close"),
)
READER = (
    Private("parse", XTermParser.parse, "a5834ad1def86544", "TerminalReader, which feeds only complete sequences"),
    Private(
        "parse_mouse_code",
        XTermParser.parse_mouse_code,
        "ceae22ff03d195e9",
        "how TerminalReader checks the numbers of the mouse",
    ),
    Private("_parse_extended_key", XTermParser._parse_extended_key, "65eeaadaf41a7aa9", "_KITTY"),
    Private(
        "_sequence_to_key_events",
        XTermParser._sequence_to_key_events,
        "00dfe99846edc6be",
        "TerminalReader, which calls it",
    ),
)
TABLES = {"corrections": CORRECTIONS, "driver": DRIVER, "terminal_reader": READER}
ROWS = [(module, each) for module, table in TABLES.items() for each in table]


@pytest.mark.parametrize(("module", "private"), ROWS, ids=[each.source.__qualname__ for _, each in ROWS])
def test_textual_has_what_a_correction_was_written_for(module: str, private: Private) -> None:
    digest = sha256(inspect.getsource(private.source).encode()).hexdigest()[:16]
    assert digest == private.digest, (
        f"Textual {version('textual')} changed {private.source.__qualname__}: check {private.check} "
        f"(mcphost/tui/textual_private/{module}.py), then write {digest} here"
    )


@cache
def private_uses() -> list[tuple[Path, str]]:
    return list(framework_privates(read(PACKAGE)))


@pytest.mark.slow  # it reads all of mcphost and Textual
def test_every_private_member_that_is_used_has_a_row() -> None:
    used = {name for path, name in private_uses() if path.is_relative_to(PLACE)}
    assert used <= {name for _, each in ROWS for name in each.names.split()}


@pytest.mark.slow  # it reads all of mcphost and Textual
def test_only_these_modules_use_private_members_of_textual() -> None:
    assert {path.stem for path in PLACE.glob("*.py")} == {"__init__", *TABLES}
    outside = [f"{path}: {name}" for path, name in private_uses() if not path.is_relative_to(PLACE)]
    for each in read(PACKAGE):
        if not each.path.is_relative_to(PLACE):
            outside += [f"{each.path}: {name}" for name in private_modules(each.nodes)]
    assert outside == [], "private members of Textual belong in mcphost/tui/textual_private, each with its reason"


def private_modules(nodes: Iterable[ast.AST]) -> list[str]:
    """The private modules of Textual from which a module imports."""
    imports = list[str]()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imports.append(node.module or "")
        elif isinstance(node, ast.Import):
            imports += [name.name for name in node.names]
    return [name for name in imports if name.startswith("textual.") and "._" in name]
