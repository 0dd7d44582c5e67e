"""A terminal's bytes: keys, pastes, mouse, size; reports and broken bytes, whole, in pieces and late."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from random import Random, SystemRandom
from selectors import SelectorKey, SelectSelector

import pytest
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.events import AppBlur, Key, MouseMove, MouseScrollDown, Paste, Resize
from textual.message import Message

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.textual_private.terminal_reader import (
    LONG_SILENCE,
    LONGEST,
    MOST_CELLS,
    SILENCE,
    WAY_OUT_SILENCE,
    TerminalReader,
    WakingEvent,
    read_terminal,
)
from tests.tui.stage import calls_in, echo, on_stage
from tests.tui.terminal_bytes import BROKEN, REPORTS, TERMINALS, as_bytes, foreign_input

PAUSE = ESCAPE_DELAY + 0.05
COLOR = b"\x1b]4;1;rgb:aaaa/aaaa/aaaa"
BEGUN = [
    COLOR, b"\x1b[", b"\x1b[1;5", b"\x1bP1$r", b"\x1b[M ", b"\x1bO", b"\x1b[[", b"\x9b", b"\xc2\x9d8", b"\x1b" * 3,
    b"\x1b[1" + b"1" * 9999, b"\x1b[200~hello", b"\x1b[200~hello\x1b[20", b"\xf0\x9f", b"\x1b_" + b"y" * 9999, b"",
]  # fmt: skip
"""States in which the reader waits for more, each with what leads to it."""

QUIT = [b"\x11", b"\x1b[113;5u", b"\x1b[1081::113;5u", b"\x1b[1081;5u", b"\x1b[113;133u", b"\x1b[27;5;113~"]


class Wire:
    """A terminal whose bytes come in pieces, and a clock that only `wait` moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reader = TerminalReader(lambda: self.now)
        self.messages: list[Message] = []

    def send(self, *pieces: bytes, pause: float = 0.0) -> Wire:
        for piece in pieces:
            self.wait(pause)
            self.messages += self.reader.feed(piece)
        return self

    def wait(self, seconds: float) -> Wire:
        end = self.now + seconds
        while (due := self.now + max(0, self.reader.patience())) <= end:
            self.now = due + 1e-6
            self.messages += self.reader.tick()
        self.now = end
        return self

    @property
    def keys(self) -> str:
        return " ".join(each.key for each in self.messages if isinstance(each, Key))

    @property
    def pasted(self) -> list[str]:
        return [each.text for each in self.messages if isinstance(each, Paste)]


def cuts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    return ((data[:at], data[at:]) for at in range(1, len(data)))


# Keys.


@pytest.mark.parametrize("terminal", TERMINALS)
def test_each_terminals_keys_are_known(terminal: str) -> None:
    keys = TERMINALS[terminal]
    assert {sent: Wire().send(sent.encode()).wait(SILENCE).keys for sent in keys.values()} == {
        sent: key for key, sent in keys.items()
    }


def test_keys_in_pieces_are_the_same_keys() -> None:
    for keys in TERMINALS.values():
        for key, sent in keys.items():
            for first, rest in cuts(sent.encode()):
                pause = 0 if len(first) == 1 or sent[1:2] in "\x1bé" or sent.endswith("$") else PAUSE
                assert Wire().send(first).send(rest, pause=pause).wait(SILENCE).keys == key, (first, rest)


UNLIKE_TEXTUAL = re.compile(
    r"\x1b[\[\]PX^_\\]|\x9b"  # begins or ends a report
    r"|\x1b\[(?:[0-9]{2}~|5[A-D]|1;[5-8]u)"  # Textual makes other keys of the number than its own table
    r"|\x1b\[1;[256]R"  # a report of the cursor's position, which the driver does not use
)


def test_what_textual_knows_is_read_as_textual_does() -> None:
    for sequence in [*ANSI_SEQUENCES_KEYS, *map(chr, range(128)), *(f"\x1b{chr(code)}" for code in range(32, 127))]:
        if not UNLIKE_TEXTUAL.fullmatch(sequence):
            theirs = XTermParser()
            expected = list(theirs.feed(sequence))
            if theirs._timeout_time is not None:
                theirs._timeout_time = 1e-9
                expected += theirs.tick()
            assert list(map(repr, Wire().send(sequence.encode()).wait(SILENCE).messages)) == list(map(repr, expected))


def test_escape_is_a_key_after_textuals_delay() -> None:
    wire = Wire().send(b"\x1b").wait(ESCAPE_DELAY * 0.9)
    assert wire.keys == ""
    assert wire.wait(ESCAPE_DELAY * 0.2).keys == "escape"
    assert wire.send(b"y").keys == "escape y"


@pytest.mark.parametrize("typed", ["]", "[", "P", "_", "[[", "[no", "]x", "Paris", "P12", "[1, 2]", "_a", "]1 ", "(y"])
def test_what_a_person_types_after_escape_is_typed(typed: str) -> None:
    wire = Wire().send(b"\x1b").send(*(letter.encode() for letter in typed), pause=PAUSE).wait(SILENCE)
    assert "".join(each.character or "" for each in wire.messages[1:] if isinstance(each, Key)) == typed


@pytest.mark.parametrize("code", [0, 8, 27, 127, 0x9B])
def test_a_key_of_kittys_protocol_brings_no_control_character(code: int) -> None:
    (key,) = Wire().send(f"\x1b[97;;{code}u".encode()).messages
    assert isinstance(key, Key)
    assert (key.key, key.character) == ("a", "a")


# Reports.


@pytest.mark.hostile("P09")
@pytest.mark.parametrize("part", range(4))
def test_a_report_is_no_key_whole_or_in_pieces_or_late(part: int) -> None:
    for report in REPORTS[part::4]:
        is_no_key(as_bytes(report))


@pytest.mark.parametrize("sequence", [b"\x1b(y", b"\x1b%G", b"\x1b#8", b"\x1b (y"])
def test_a_sequence_that_chooses_letters_or_sizes_is_no_key(sequence: bytes) -> None:
    assert Wire().send(sequence).wait(SILENCE).messages == []
    assert Wire().send(sequence[:2]).wait(SILENCE).send(b"y").keys.endswith("y")


def is_no_key(data: bytes) -> None:
    assert Wire().send(data).wait(SILENCE).messages == [], data
    for first, rest in cuts(data):
        for pause in (0.0, PAUSE, SILENCE * 0.9, SILENCE * 2):
            if pause > SILENCE and first == b"\x1b":
                continue
            wire = Wire().send(first).send(rest, pause=pause).wait(SILENCE)
            assert wire.pasted == []
            if first == b"\x1b" and pause:  # the reader cannot know that more will come
                assert wire.keys == ("escape" if rest != b"\\" else "escape backslash"), (rest, pause)
            else:
                assert wire.messages == [], (first, rest, pause)


@pytest.mark.parametrize(
    "rest", [COLOR[1:] + b"\x07", b"P>|xterm(390y)\x1b\\", b"[?62;22c", b"[?2026;1$y", b"_Gi=1;OK\x1b\\"]
)
def test_a_report_whose_escape_was_lost_is_no_keys(rest: bytes) -> None:
    assert Wire().send(b"\x1b").send(rest, pause=60).wait(SILENCE).keys == "escape"


@pytest.mark.parametrize(
    "tail", [b"rgb:aaaa/aaaa/aaaa\x07", b"aa/aaaa/aaaa\x07", b"a/aaaa/aaaa\x1b\\", b"y\x1b\\", b"390y)\xc2\x9c"]
)
def test_the_rest_of_a_report_of_another_program_is_dropped(tail: bytes) -> None:
    assert Wire().send(tail + b"z").wait(SILENCE).keys == "z"


@pytest.mark.parametrize("text", ["]0;", "[?", "Please look\x07", "[1]", "X\x07", "[?x=1", "_G", "P>"])
def test_text_that_comes_at_once_is_typed(text: str) -> None:
    assert len(Wire().send(text.encode()).messages) == len(text)


@pytest.mark.parametrize(
    "report", [COLOR + b"\x07", b"\x1bP>|xterm(390y)\x1b\\", b"\x1b[?62;22c", b"\x1b[200~y\x1b[201~"]
)
@pytest.mark.parametrize("pause", [PAUSE, 0.4])
def test_a_report_that_comes_byte_by_byte_is_no_letter(report: bytes, pause: float) -> None:
    wire = Wire().send(*(bytes([byte]) for byte in report), pause=pause)
    assert (wire.keys, "".join(wire.pasted)) == ("escape", "y" if b"200~" in report else "")


@pytest.mark.parametrize("begun", BEGUN, ids=range(len(BEGUN)))
def test_after_some_silence_keys_are_keys_again(begun: bytes) -> None:
    wire = Wire().send(begun).wait(max(SILENCE, LONG_SILENCE))
    del wire.messages[:]
    assert wire.send(b"y").keys.endswith("y")


def test_typing_does_not_keep_an_unfinished_report_open_for_ever() -> None:
    wire = Wire().send(COLOR)
    wire.send(*[b"x"] * 30, pause=LONGEST / 20)
    assert wire.keys.startswith("x x")


def test_an_endless_report_is_not_kept() -> None:
    wire = Wire()
    for _ in range(100):
        wire.send(b"\x1b]52;c;" + b"y" * 100_000)
    assert wire.messages == []
    assert len(wire.reader._held) < 100


def test_what_the_terminal_can_do_is_heard_by_the_framework() -> None:
    said = Wire().send(b"\x1b[?2026;2$y\x1b[?20", b"48;1$y\x1b[I", b"\x1b[O").messages
    assert [type(each).__name__ for each in said] == [
        "TerminalSupportsSynchronizedOutput", "InBandWindowResize", "AppFocus", "AppBlur"
    ]  # fmt: skip


def test_of_many_reports_of_the_focus_the_last_one_counts() -> None:
    assert [type(each) for each in Wire().send(b"\x1b[I\x1b[O" * 200 + b"y").messages] == [AppBlur, Key]


# Pastes.


@pytest.mark.hostile("P09")
@pytest.mark.parametrize(
    "text",
    [
        "", "hello", "some notes \x1b[0my more", "\x1b", "a\x1b[31mERROR\x1b[0m\rand", "\x1ba\x1by",
        "\x1b]52;c;y\x07", "é\u202e😀", "\x03", "\x11\x11", "\x1b[113;5u", "\x1b[20", "\x1b[200", "x" * 200_000,
        "\x9b201~y", "\x18\x1a\x1b\\y", "\x1b[A\x1b[B",
    ],
)  # fmt: skip
def test_a_paste_is_text_whatever_is_in_it_and_however_it_is_cut(text: str) -> None:
    data = f"\x1b[200~{text}\x1b[201~".encode()
    for first, rest in [(data, b""), *(cuts(data) if len(data) < 1000 else [(data[:4096], data[4096:])])]:
        wire = Wire().send(first).send(rest, pause=WAY_OUT_SILENCE * 0.9 if len(first) > 1 else 0)
        assert (wire.keys, wire.pasted) == ("", [text]), (first, rest)
        assert wire.send(b"y").keys == "y"


def test_an_end_mark_that_was_pasted_does_not_turn_the_rest_into_keys() -> None:
    assert Wire().send(b"\x1b[200~notes\x1b[201~y\x1b[201~").pasted == ["notesy"]
    assert Wire().send(b"\x1b[200~notes\x1b[201~y\x1b[200~ more\x1b[201~").pasted == ["notesy more"]


def test_a_paste_without_its_first_mark_is_text() -> None:
    wire = Wire().send(b"tes y\x1b[201~")
    assert (wire.keys, wire.pasted) == ("", ["tes y"])


def test_two_pastes_and_a_key_between_them_stay_apart() -> None:
    wire = Wire().send(b"\x1b[200~one\x1b[201~", b"\r", b"\x1b[200~two\x1b[201~")
    assert (wire.keys, wire.pasted) == ("enter", ["one", "two"])


def test_a_paste_waits_for_its_end_and_gives_up_after_some_silence() -> None:
    wire = Wire().send(b"\x1b[200~hello", b" wor", b"ld\x1b", pause=LONG_SILENCE * 0.9).wait(LONG_SILENCE * 0.9)
    assert wire.messages == []
    assert wire.send(b"[201~").pasted == ["hello world"]
    wire = Wire().send(b"\x1b[200~hello").wait(LONG_SILENCE)
    assert wire.pasted == ["hello"]
    assert wire.send(b"y").keys == "y"


def test_the_rest_of_a_paste_that_was_given_up_is_no_keys() -> None:
    wire = Wire().send(b"\x1b[200~hello").wait(LONG_SILENCE).send(b" yes, always", b" y\x1b[201~")
    assert (wire.keys, wire.pasted) == ("", ["hello", " yes, always y"])


def test_undecodable_bytes_of_a_paste_are_replaced() -> None:
    assert Wire().send(b"\x1b[200~caf\xe9 \xe2\x82 a\0b\x1b[201~").pasted == ["caf\ufffd \ufffd ab"]


def test_a_paste_starts_within_an_unfinished_report() -> None:
    assert Wire().send(COLOR, b"\x1b[200~a\x07y\x1b[201~").pasted == ["a\x07y"]


@pytest.mark.parametrize("begun", BEGUN, ids=range(len(BEGUN)))
def test_ctrl_q_and_ctrl_c_are_heard_in_every_state(begun: bytes) -> None:
    for key, sent in (*(("ctrl+q", each) for each in QUIT), ("ctrl+c", b"\x03"), ("ctrl+c", b"\x1b[99;5u")):
        wire = Wire().send(begun, sent, pause=0.01)
        assert wire.wait(WAY_OUT_SILENCE * 1.1).keys.endswith(key), sent


@pytest.mark.parametrize("begun", BEGUN, ids=range(len(BEGUN)))
@pytest.mark.parametrize("pause", [0.0, 0.3, 1.9])
@pytest.mark.parametrize("sent", [b"\x03", b"\x1b[57442;5u\x1b[99;5u", b"\x1b[1089::99;5u", b"\x1b[27;5;99~"])
def test_ctrl_c_twice_is_two_keys_in_every_state(begun: bytes, pause: float, sent: bytes) -> None:
    wire = Wire().send(begun, pause=0.01).send(sent, sent, pause=pause).wait(WAY_OUT_SILENCE * 1.1)
    pressed = [each for each in wire.keys.split() if each not in ("escape", "left_control")]
    assert pressed[-2:] == ["ctrl+c", "ctrl+c"]
    assert all(sent.decode()[-7:] not in each for each in wire.pasted)


def test_keys_after_a_way_out_of_a_paste_are_not_pressed() -> None:
    wire = Wire().send(b"\x1b[200~hello", b"\x03\x1b[121u").wait(LONG_SILENCE)
    assert (wire.keys, wire.pasted) == ("ctrl+c", ["hello"])


# Bytes that say nothing.


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_bytes_become_a_replacement_character_or_nothing(broken: bytes) -> None:
    wire = Wire().send(broken, b"z")
    assert wire.keys in ("z", "replacement_character z")


@pytest.mark.parametrize("report", [b"\x1b[M#\x98\x2a", b"\x1b[M #!", b"\x1b[M \xc3\xa9", b"\x1b[M\xff\xfe\xfd"])
def test_an_old_mouse_report_is_three_bytes_whatever_they_are(report: bytes) -> None:
    assert Wire().send(report + b"z").keys == "z"
    for first, rest in cuts(report):
        assert Wire().send(first, rest, b"z").keys == "z"


def test_the_mouse_after_a_size_of_no_pixels_is_counted_in_cells() -> None:
    said = Wire().send(b"\x1b[?2048;1$y\x1b[48;30;100;0;0t\x1b[<35;10;5M").messages
    assert isinstance(said[1], Resize)
    assert (said[1].size, said[1].pixel_size) == ((100, 30), None)
    assert isinstance(said[2], MouseMove)
    assert (said[2].screen_x, said[2].screen_y) == (9, 4)


def test_the_mouse_in_pixels_is_counted_in_cells() -> None:
    size, wheel, move = Wire().send(b"\x1b[48;30:1;100;600;1000t\x1b[<65;101;41M\x1b[<35;1;1M").messages
    assert isinstance(size, Resize)
    assert size.pixel_size == (1000, 600)
    assert isinstance(wheel, MouseScrollDown)
    assert (wheel.screen_x, wheel.screen_y) == (10, 2)
    assert isinstance(move, MouseMove)


@pytest.mark.parametrize("size", ["0;0;0;0", "30;0;600;1000", f"30;{MOST_CELLS + 1};1;1", "99999;99999;0;0", "1;2;3"])
def test_a_size_that_no_terminal_has_is_dropped(size: str) -> None:
    assert Wire().send(f"\x1b[48;{size}t".encode()).messages == []


def test_garbage_is_read_without_an_exception_or_a_letter() -> None:
    seed = SystemRandom().randrange(1 << 32)
    random, wire = Random(seed), Wire()
    pieces = [*b"\x1b[]P_^XO?<>=$:;019MRutm~ \x07\\\x9b\x9d\x90\xff\xe2\x82\xc3\xa9\xed\xa0\0\x18"]
    for _ in range(20_000):
        wire.send(bytes(random.choices(pieces, k=random.randrange(1, 12)))).wait(random.choice([0, 0, PAUSE, SILENCE]))
    assert wire.send(b"\x1b[200~end\x1b[201~").wait(LONG_SILENCE).pasted[-1].endswith("end"), seed


@pytest.mark.hostile("P09")
async def test_ten_thousand_things_that_no_person_typed_answer_no_question(tmp_path: Path) -> None:
    seed, record, now = SystemRandom().randrange(1 << 32), tmp_path / "record", 0.0
    reader = TerminalReader(lambda: now)
    async with on_stage(echo("--record", str(record)), tmp_path / "state") as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hi"})
        dialog = await stage.call_dialog()
        for number, pieces in enumerate(foreign_input(Random(seed), 10_000)):
            for piece in pieces:
                now += PAUSE
                for message in (*reader.tick(), *reader.feed(piece)):
                    stage.app._driver.process_message(message)  # type: ignore[union-attr]
            if number % 500 == 0:
                await stage.pilot.pause()
                assert (call.state, stage.app.screen) == (CallState.ASKING, dialog), (seed, number)
        await stage.pilot.pause()
        assert isinstance(stage.app.screen, ToolCallScreen), seed
        assert (call.state, stage.app.failure_count) == (CallState.ASKING, 0), seed
        assert not (tmp_path / "state" / "approvals.toml").exists()
        assert calls_in(record) == []
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


# Its place in the framework.


def test_input_reaches_the_app_until_the_thread_ends() -> None:
    master, slave = os.openpty()
    said: list[Message] = []
    heard, ended = threading.Event(), WakingEvent()

    def take(message: Message) -> None:
        said.append(message)
        if len(said) == 3:
            heard.set()

    thread = threading.Thread(target=read_terminal, args=(slave, ended, take))
    thread.start()
    os.write(master, b"\x1b[A" + COLOR + b"\x1b\\\n\x1b")  # line mode: it is read at the end of the line
    os.write(master, b"\n")
    assert heard.wait(30)
    ended.set()
    thread.join(30)
    assert not thread.is_alive()
    assert [each.key for each in said if isinstance(each, Key)][:2] == ["up", "ctrl+j"]
    os.close(master)
    os.close(slave)


def test_the_thread_sleeps_until_something_comes_or_it_is_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = SimpleQueue[float | None]()

    class Recording(SelectSelector):
        def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
            waits.put(timeout)
            return super().select(timeout)

    monkeypatch.setattr("selectors.SelectSelector", Recording)
    (master, slave), ended = os.openpty(), WakingEvent()
    for _ in range(2):  # the second time after a suspension
        thread = threading.Thread(target=read_terminal, args=(slave, ended, lambda _: None))
        thread.start()
        assert waits.get(timeout=30) is None
        ended.set()
        thread.join(30)
        assert not thread.is_alive()
        assert waits.empty()
        ended.clear()
    os.close(master)
    os.close(slave)


def test_the_thread_ends_when_the_input_does() -> None:
    output, given = os.pipe()
    os.write(given, b"y")
    os.close(given)
    said: list[Message] = []
    read_terminal(output, WakingEvent(), said.append)
    os.close(output)
    assert [each.key for each in said if isinstance(each, Key)] == ["y"]


def test_textual_still_needs_this_reader() -> None:
    pressed = [each.key for each in XTermParser().feed(COLOR.decode() + "\x07" + "\x1b[A" * 9) if isinstance(each, Key)]
    assert "a" in pressed, (
        "Textual swallows reports now: read in mcphost/tui/textual_private/terminal_reader.py when that module can go"
    )
