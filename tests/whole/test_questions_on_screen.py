"""server-everything asks for forms, answers and folders: answered on a terminal, and its result says what arrived."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.terminal import Terminal, mcphost
from tests.whole.app import GUARD, find
from tests.whole.peers import PEERS, running

pytestmark = pytest.mark.timeout(400)  # a first run installs

FORM, MODEL, ROOTS = "trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"

LISTENING = GUARD + 0.3
"""Seconds after which a dialog that is being painted listens."""

ASKED = "asked by the server “e”, not by mcphost"

DEAF = (ASKED, "What the model would say", "y   send it to “e”")
"""Words of dialogs that ignore what comes too early, of one that asks again among them."""

Step = tuple[Sequence[str], Sequence[str]]
"""Keys, and the words that are on screen once they were heard."""

# The form. What is typed first replaces what is there, so that it may be typed again.
OPEN = (ASKED, "asks you to fill in a form", "for call", "String *", "n   decline")
REVIEW = ("Send this to “e”?", "y   send this to “e”")
ADA: Step = (["ctrl+u", "Ada"], ["▏Ada "])
REST: Step = (["enter", "space", "enter", "enter", "ada@example.com", "ctrl+r"], [*REVIEW, '"check": true', '"fish-1"'])
READ: Step = (["ctrl+r"], [*REVIEW, '"name": "Ada"'])

# The answer of a model, who is the user.
WISH = (ASKED, "write an answer to this prompt?", "You are a helpful test server.", "of the tides", "n   decline")
TIDES: Step = (["ctrl+u", "of the tides"], ["▏of the tides"])
RUN: Step = (["ctrl+r"], WISH)
WRITE: Step = (["y"], ["You are the model: write the answer", "What the model would say"])
WORDS: Step = (["In my words", "ctrl+r"], ["Send this answer to “e”?", "In my words", "y   send it to “e”"])

# The picker of folders.
PICKER = (ASKED, "“e” asks for its roots", "suggested: the git work tree", "n   share none")
MARK: Step = (["space"], ["[x] ~/a b", "share the marked folder with “e”"])

CASES: Mapping[str, tuple[str, Sequence[Step]]] = {
    "a form is filled in": (
        FORM,
        [
            ([], OPEN),
            ADA,
            REST,
            (["y"], ["- Name: Ada", "- Agreed to terms: true", "- Email: ada@example.com", '"action": "accept"']),
        ],
    ),
    "a form is edited after its review": (
        FORM,
        [
            ([], OPEN),
            ADA,
            READ,
            (["e"], [*OPEN, "▏Ada "]),
            ([" King", "ctrl+r"], [*REVIEW, '"name": "Ada King"']),
            (["y"], ["- Name: Ada King", "- Favorite Integer: 42", '"action": "accept"']),
        ],
    ),
    "a form is declined": (FORM, [([], OPEN), ADA, (["escape", "n"], ["User declined", '"action": "decline"'])]),
    "a form is cancelled": (FORM, [([], OPEN), ADA, READ, (["x"], ['"action": "cancel"'])]),
    "an answer is written and edited after its review": (
        MODEL,
        [
            *(TIDES, RUN, WRITE, WORDS),
            (["e"], ["ctrl+r review what would be sent"]),
            ([" alone", "ctrl+r"], ["In my words alone", "y   send it to “e”"]),
            (["y"], ['"model": "human"', '"stopReason": "endTurn"', '"text": "In my words alone"']),
        ],
    ),
    "no answer is written": (MODEL, [TIDES, RUN, (["n"], ["User rejected sampling request"])]),
    "an answer is not sent": (MODEL, [TIDES, RUN, WRITE, WORDS, (["n"], ["User rejected sampling request"])]),
}


@pytest.fixture(scope="module", params=["stdio", "http"])
def entry(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Any]]:
    """The server over each transport, for all tests of it."""
    with running(PEERS["everything"], request.param) as made:
        yield made


@pytest.fixture(scope="module")
def screen(entry: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A screen that one question after another is answered on."""
    with meeting(tmp_path_factory.mktemp("screen"), entry, "capabilities = { roots = false }") as terminal:
        terminal.wait_for("1 ready", "Tools · all servers", seconds=40)
        yield terminal


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder whose name is short enough to stand in one line of a pane, however the tests are run."""
    with TemporaryDirectory(prefix="home-") as name:
        yield Path(name).resolve()


@contextmanager
def meeting(folder: Path, entry: Mapping[str, Any], more: str = "") -> Iterator[Terminal]:
    """The app in a work tree below a home of its own, its server `e` of this entry; it must quit on request."""
    work = folder / "a b"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    config = folder / "e.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
    config.write_text("\n".join(["[servers.e]", *lines, more, "[policy]", 'default = "allow"', ""]))
    env = {"HOME": str(folder), "MCPHOST_STATE_DIR": str(folder / "state"), "MCPHOST_KEYCHAIN": "off"}
    with mcphost("--config", str(config), columns=160, rows=60, env=env, cwd=work) as terminal:
        yield terminal
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


def do(terminal: Terminal, keys: Sequence[str], words: Sequence[str], but: str = "", shown: Sequence[str] = ()) -> str:
    """Press keys until the words are on screen, and ``but`` is not.

    A key that is alone, or comes after what empties its field, comes again where all of ``shown`` is still to be seen.
    """
    before = [word in terminal.text for word in DEAF]
    if len(keys) == 1 or "ctrl+u" in keys:
        terminal.press_until(keys, *words, but=but, again=shown)
    else:
        terminal.press(*keys)
        terminal.wait_until(lambda text: all(word in text for word in words) and not (but and but in text), f"{words}")
    if any(word in terminal.text and not was for word, was in zip(DEAF, before, strict=True)):
        terminal.rest(LISTENING)
    return terminal.text


def call(terminal: Terminal, tool: str, steps: Sequence[Step]) -> str:
    """Call the tool and follow the steps, of which the last one says what its result shows; all of the screen then."""
    find(terminal, tool)
    terminal.press("enter")
    shown: Sequence[str] = ()
    for keys, words in steps[:-1]:
        do(terminal, keys, words, shown=shown)
        shown = words
    return do(terminal, *steps[-1], but=ASKED, shown=shown)


@pytest.mark.requirement("ELIC-02", "ELIC-03", "ELIC-04", "ELIC-09", "ELIC-14", "SAMP-02", "SAMP-03", "SAMP-09")
@pytest.mark.parametrize(("entry", "case"), [*zip(cycle(("stdio", "http")), CASES)], indirect=["entry"], scope="module")
def test_the_server_receives_what_the_user_answered(screen: Terminal, case: str) -> None:
    """Each case over one transport: screen and keys do not depend on it."""
    tool, steps = CASES[case]
    result = call(screen, tool, steps)
    if steps[-1][0] == ["y"]:
        screen.wait_for('"content": {')
    else:
        assert '"content": {' not in result


@pytest.mark.requirement("ROOT-02", "ROOT-03", "ROOT-09")
def test_the_work_tree_is_shared_when_the_server_asks(entry: Mapping[str, Any], home: Path) -> None:
    with meeting(home, entry) as terminal:
        do(terminal, [], ["e asks for its roots · f2"])
        do(terminal, ["f2"], ["Inbox"])
        do(terminal, ["enter"], [*PICKER, *MARK[1]])
        do(terminal, ["y"], ["1 root(s) received from client"], but=ASKED)
        call(terminal, ROOTS, [([], ["(1 total)", "1. a b", f"{home.as_uri()}/a%20b"])])


@pytest.mark.requirement("ROOT-02", "ROOT-04", "ROOT-09", "ROOT-10")
def test_a_server_without_folders_is_notified_of_a_later_one(entry: Mapping[str, Any], home: Path) -> None:
    with meeting(home, entry) as terminal:
        do(terminal, [], ["e asks for its roots · f2"])
        do(terminal, ["f2"], ["Inbox"])
        do(terminal, ["enter"], [*PICKER, *MARK[1]])
        do(terminal, ["n"], ["0 root(s) received from client"], but=ASKED)
        call(terminal, ROOTS, [([], ["no roots are currently configured"])])
        do(terminal, ["s", "down", "enter"], ["Server · e", "just now: got no folder"])
        do(terminal, ["f"], ["Roots of “e”", "[ ] ~/a b"])
        do(terminal, *MARK)
        do(terminal, ["y"], ["just now: got 1 folder"])
        do(terminal, ["escape"], ["1 root(s) received from client"], but=ASKED)
        call(terminal, ROOTS, [([], ["(1 total)", "1. a b", f"{home.as_uri()}/a%20b"])])
