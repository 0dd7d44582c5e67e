"""Hostile text of a server adds no kind of control sequence to the output.

The same walk (list, form, dialog, result, logs, card) on a real terminal over a plain server and over servers whose
every text is hostile; the output of both is parsed, and the second holds no kind of sequence that the first lacks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest

from tests.terminal import Terminal, mcphost
from tests.whole.app import GUARD, QUESTION, agree, child_of, find, rest
from tests.whole.sequences import coloured, kinds

SERVERS = Path(__file__).resolve().parents[1] / "servers"

MARKS: Mapping[str, list[str]] = {
    "csi": ["␛[2J␛[H␛[8mhidden"],
    "clipboard": ["␛]52;c;"],
    "link": ["␛]8;;https://evil.example/"],
    "title": ["␛]0;owned␇"],
    "query": ["␛[6n␛[c"],
    "modes": ["␛[?1049l"],
    "c1": ["⟨U+009B⟩2J"],
    "bidi": ["safe⟨U+202E⟩txt.exe"],
    "invisible": ["a⟨U+200B⟩⟨U+00AD⟩"],
    "markup": ["[link=https://evil.example/]x[/link]", "[DELETES ALL FILES]", "[$error]"],
    "markdown": ["![i](https://evil.example/p.png)", "<img src=x onerror=alert(1)>"],
    "wall": ["wwww"],
}

WALKS = ["csi+clipboard+link+title", "query+modes+c1", "bidi+invisible+markup+markdown", "wall"]
"""Kinds of text that are hostile together: a walk takes seconds."""


def start(folder: Path, *arguments: str, **env: str) -> Terminal:
    config = folder / "one.toml"
    words = json.dumps(["-S", "-E", *arguments])
    config.write_text(f'[servers.one]\ncommand = "{sys.executable}"\nargs = {words}\n')
    return mcphost(
        "--config", str(config), columns=160, rows=48, env={"MCPHOST_STATE_DIR": str(folder / "state"), **env}
    )


INSTRUCTIONS = "its words, not ours"
"""The line above a server's instructions, at the end of its card."""


def walk(terminal: Terminal, tool: str, typed: str) -> list[str]:
    """The screens passed on the way: list, definition, form, dialog, result, its JSON, logs, card and help."""
    screens = [terminal.wait_for("1 ready", "Tools · all servers")]
    find(terminal, tool)
    terminal.press("down")
    screens.append(terminal.press_until(["d"], "definition", '"inputSchema"', again=["Tools · all servers"]))
    terminal.press("q")
    terminal.wait_gone('"inputSchema"')
    screens.append(terminal.press_until(["enter"], "ctrl+r run"))
    terminal.press(typed)
    terminal.press_until(["ctrl+r"], QUESTION)
    screens.append(asked(terminal))
    while "scroll to the end" in terminal.text:
        terminal.press("space")
        screens.append(rest(terminal))
    agree(terminal, "Result · one", "● done")
    screens.append(terminal.press_until(["3"], '"content"'))
    terminal.press("f3", "enter")
    screens.append(rest(terminal))
    screens.append(terminal.press_until(["escape", "s", "down", "enter"], "Server · one"))
    screens.append(end_of_card(terminal))
    if INSTRUCTIONS not in terminal.text:  # the instructions may be longer than the card
        screens.append(terminal.press_until(["pageup"], INSTRUCTIONS, again=["Server · one"]))
    screens.append(terminal.press_until(["?"], "Keys", again=["Server · one"]))
    leave(terminal)
    return screens


def end_of_card(terminal: Terminal) -> str:
    """Go to the end of the server card; a card that was not drawn to its end does not hear the first keys."""
    for _ in range(50):
        terminal.press("end")
        screen = rest(terminal)
        if INSTRUCTIONS in screen or "│ State " not in screen:
            return screen
    raise AssertionError(f"the card stays at its top:\n{terminal.text}")


def asked(terminal: Terminal) -> str:
    """Wait until the question is there, and listens to keys."""
    terminal.wait_for(QUESTION)
    return rest(terminal, GUARD)


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_exit() == 0


@pytest.fixture(scope="module")
def benign(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The kinds of sequences of a walk over a server that means well."""
    folder = tmp_path_factory.mktemp("benign")
    with start(folder, str(SERVERS / "echo.py"), "--instructions", "Be nice.") as terminal:
        walk(terminal, "echo back", "hello")
        return kinds(bytes(terminal.raw))


def test_the_parser_tells_kinds_apart() -> None:
    raw = b"\x1b[2J\x1b[1;31mx\x1b[8mh\x1b[?1049h\x1b]0;title\x07\x1b]52;c;eA==\x1b\\\x1bc\x07\xc2\x9b2J\x1b[6n"
    assert kinds(raw) == {
        "CSI J", "CSI m", "SGR 8", "CSI ?1049h", "OSC 0", "OSC 52", "ESC c", "'\\x07'", "'\\x9b'", "CSI 6n",
    }  # fmt: skip


@pytest.mark.hostile("T01", "T02", "T03", "T04", "T05", "T06", "T07", "T08", "T09", "T10", "T11", "T12")
@pytest.mark.requirement("SEC-08", "SEC-13")
@pytest.mark.parametrize("together", WALKS)
def test_hostile_text_is_shown_as_marks_and_sends_no_sequence(together: str, benign: set[str], tmp_path: Path) -> None:
    with start(tmp_path, str(SERVERS / "hostile.py"), "escapes", "--kind", together) as terminal:
        screens = walk(terminal, "dressed", "")
        sent = kinds(bytes(terminal.raw))
    assert sent - benign == set()
    everything = "\n".join(" ".join(screen.split()) for screen in screens)
    for mark in chain.from_iterable(MARKS[kind] for kind in together.split("+")):
        assert mark in everything


def test_each_kind_of_hostile_text_is_in_a_walk() -> None:
    assert [kind for together in WALKS for kind in together.split("+")] == [*MARKS]


@pytest.mark.hostile("T13")
def test_a_server_has_no_terminal_to_write_to(tmp_path: Path) -> None:
    with start(tmp_path, str(SERVERS / "hostile.py"), "tty") as terminal:
        terminal.wait_for("1 ready", "act")
        terminal.press_until(["enter"], QUESTION)
        asked(terminal)
        agree(terminal, "● done")
        terminal.press_until(["2"], "isatty", "refused: ")
        assert b"hostile was here" not in terminal.raw
        leave(terminal)


def test_quitting_during_a_question_sends_nothing_and_ends_servers(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with start(tmp_path, str(SERVERS / "echo.py"), "--record", str(record)) as terminal:
        terminal.wait_for("1 ready")
        find(terminal, "environment")
        terminal.press("enter")
        terminal.press_until(["ctrl+r"], QUESTION)
        asked(terminal)
        server = child_of(terminal.process.pid, "echo.py")
        leave(terminal)
        assert not Path(f"/proc/{server}").exists()
    assert "tools/call" not in record.read_text()


def test_without_color_words_and_shapes_show_the_state(tmp_path: Path) -> None:
    with start(tmp_path, str(SERVERS / "hostile.py"), "version-unknown", NO_COLOR="1") as terminal:
        text = terminal.wait_for("✖ 1 failed", "✖ one")
        assert "failed" in text
        leave(terminal)
        assert not coloured(bytes(terminal.raw))


BROKEN = """
import sys
from mcphost.cli import main
from mcphost.tui.tools.pane import ToolList

def show_entries(self, *_):
    token = "sk-planted-secret"
    raise ValueError("cannot show " + token)

ToolList.show_entries = show_entries
sys.exit(main(["--config", sys.argv[1]]))
"""


def test_the_last_words_of_a_failing_screen_contain_no_value(tmp_path: Path) -> None:
    config = tmp_path / "one.toml"
    config.write_text(f'[servers.one]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / "echo.py"}"]\n')
    env = {"MCPHOST_STATE_DIR": str(tmp_path / "state")}
    with Terminal([sys.executable, "-c", BROKEN, str(config)], env=env, columns=160) as terminal:
        terminal.wait_for("mcphost could not show something")
        terminal.press("s", *["down", "up"] * 12)
        terminal.wait_exit()
        assert b"mcphost gives up: ValueError at mcphost/tui/" in terminal.raw
        assert b"sk-planted-secret" not in terminal.raw
