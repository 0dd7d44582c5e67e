"""Reads the terminal's bytes: keys, mouse, focus, size and pastes. Nothing else is taken for a key.

Approving a tool call takes a person's key, but a terminal also sends reports, perhaps ones that the program before this
one asked for, late or in pieces. Textual turns unknown sequences into keys, removes escape characters from pastes,
and ends the app on bytes that are not UTF-8. This module can go once its driver decodes with replacement, drops
unknown and unfinished sequences, keeps a paste as text up to its end mark or to some seconds of silence, checks numbers
before it uses them, and asks for the alternate keys of kitty's protocol.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Final

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.events import AppBlur, AppFocus, Key, Paste, Resize
from textual.keys import Keys
from textual.message import Message

from mcphost.posix import wakeup_pipe

ASK_ALTERNATE_KEYS: Final = "\x1b[=4;2u"
"""Adds a flag to those of kitty's protocol that Textual asks for: the key of the Latin layout. On a Russian keyboard
ctrl+q is then `1081::113;5u`. Without the protocol, shift+enter would be lost, and escape would have to wait.
"""

SILENCE: Final = 2.0
"""Seconds of silence after which an unfinished report is given up. A lost packet is sent again after 0.2 to 1 s."""

LONGEST: Final = 10.0
"""Seconds after which an unfinished report is given up at the first pause, so that typing does not prolong it."""

LONG_SILENCE: Final = 5.0
"""As `SILENCE`, for a paste, which is worth the wait, and a sequence that ends with a letter, as the next key may."""

REST_CHARACTERS: Final = 8
"""Characters in one read that count as the rest of a paste or report that was given up; no person types so fast."""

WAY_OUT_SILENCE: Final = 0.5
"""Seconds of silence after which ctrl+c or ctrl+q in an unfinished paste is a key rather than text."""

READ_BYTES: Final = 1 << 16

PASTE_CHARACTERS: Final = 1 << 24
"""Limit of a paste, above which it is cut; no input box takes a quarter of it."""

SEQUENCE_CHARACTERS: Final = 4096
"""Limit of a key's sequence. Kitty's protocol sends the text of an input method in one, as numbers."""

TAIL: Final = 64
"""Characters kept of unfinished text; no end mark and no ctrl+c or ctrl+q is longer."""

MOST_CELLS: Final = 2048
"""Limit of the rows and columns that a terminal may report. The largest screen in the smallest font has 2,000."""

ESC: Final = "\x1b"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
WAYS_OUT: Final = frozenset({"ctrl+c", "ctrl+q"})

# Undecodable bytes are \udc80 to \udcff here (surrogateescape), so that the 8-bit forms of introducers are known.
_CSI, _SS3 = r"(?:\x1b\[|[\x9b\udc9b])", r"(?:\x1bO|[\x8f\udc8f])"
_STRING = r"(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f\udc90\udc98\udc9d-\udc9f])"  # OSC, DCS, SOS, PM, APC
_BEGINS = f"(?:{_CSI}|{_SS3}|{_STRING})"
_BYTE, _TWO_BYTES, _THREE_BYTES = r"[ -\x7f\udc80-\udcff]", r"[\x80-\u07ff]", r"[\u0800-\ud7ff\ue000-\uffff]"
_STOPS = r"(?=[\x1b\x03\x11\x80-\x9f\udc80-\udc9f])"  # begins something else, or is a way out

_TOKEN: Final = re.compile(
    rf"""
      (?P<key> [^\x1b\x80-\x9f\udc80-\udcff] )
    | (?P<escape> \x1b (?=\x1b) )
    | {_CSI} (?:
          (?P<paste> 200~ )
        | (?P<mouse> M (?: {_BYTE}{{3}} | {_BYTE}{_TWO_BYTES} | {_TWO_BYTES}{_BYTE} | {_THREE_BYTES} ) )
        | M {_BYTE}{{0,2}} (?: (?=[\x1b\x03\x11]) | [\x00-\x1f] )
        | (?P<console> \[[ -~] )
        | (?P<csi> (?! [M\[] ) [ -?]* [@-~] )
        | (?P<cut> \[? [ -?]* ) (?: {_STOPS} | [^ -~] )
      )
    | {_SS3} (?: (?P<ss3> [0-9;]* [ @-~] ) | [0-9;]* (?: {_STOPS} | [^ @-~0-9;] ) )
    | (?P<string> {_STRING} )
    | \x1b [ -/]+ [0-~]
    | \x1b (?P<alt> [^\x1b\[\]PX^_O\\\x80-\x9f\udc80-\udcff] )
    | \x1b (?: \\ | (?=[\x80-\x9f\udc80-\udcff]) )
    | (?P<undecodable> (?: [\udcc2-\udcf4][\udc80-\udcbf]{{0,2}} | (?! {_BEGINS} ) [\udc80-\udcff] )+ )
    | (?! {_BEGINS} ) [\x80-\x9f]
    """,
    re.VERBOSE | re.DOTALL,
)
"""A complete key, sequence or mark. Text that begins with ESC and does not match waits for its rest."""

_STRING_END: Final = re.compile(r"\x07|\x1b\\|[\x9c\udc9c\x18\x1a]|(?=\x1b\[200~)")
_SEQUENCE_END: Final = re.compile(r"[@-~\x18\x1a]|(?=\x1b)")
_MAYBE_WAY_OUT: Final = re.compile(r"[\x03\x11]|\x1b\[[0-9:;]{1,40}[u~]")
_KEYS_AT_END: Final = re.compile(rf"(?:{_MAYBE_WAY_OUT.pattern})*\Z")
_ALT_O: Final = "\x1bO"
_SHIFTED_EDIT_KEY: Final = re.compile(r"\x1b\[[0-9]+\$")  # of rxvt; elsewhere `$` does not end a sequence

_REPORT = r"(?:\][0-9]{1,5};|P(?:[01]?[$+]r|>\||!\|)|_G)"
_END = r"[^\x07\x1b\x9c\udc9c]*(?:\x07|\x1b\\|[\x9c\udc9c])"
_REST: Final = re.compile(rf"{_REPORT}{_END}|\[[<=>?][0-9;:]+\$?[A-Za-z]")
"""Sequences that only a terminal sends, complete but without their escape."""

_REPORT_TAIL: Final = re.compile(
    r"[ -~]+(?:\x1b\\|[\x9c\udc9c])|(?:rgba?:)?[0-9a-f]{0,4}(?:/[0-9a-f]{2,4})+\x07", re.IGNORECASE
)
"""The end of a report, of which the last is a color: no person types text and a string's end, or ctrl+g, at once."""

_LATE_REST: Final = re.compile(
    rf"{_REPORT}|[]P_^X]{_END}|\[(?:[<=>?]|[A-DFHIMOZ]|\[[A-E]|[0-9;:]+(?:[ -/]?[A-Za-z~^@]|\$))"
)
"""Text that people hardly ever type right after escape."""

_LATE_REST_BEGINS: Final = re.compile(r"\][0-9]{0,5}|P(?:[01]?[$+]?|>|!)|_|\[\[?|\[[0-9;:]+")

_KITTY: Final = re.compile(
    r"\x1b\[([0-9]{0,7})(?::[0-9]*)?(?::([0-9]{0,7}))?(?:;([0-9]{0,5})(?::([0-9]))?)?"
    r"(?:;([0-9]{0,7}(?::[0-9]{0,7})*))?([u~A-FHPQRS])"
)
"""Key, its key on a Latin layout, modifiers, kind of event, text as code points, and the end."""

_OTHER_KEY: Final = "27~"
"""First parameter and end of xterm's modifyOtherKeys sequences; the key follows the modifiers."""

_RELEASED: Final = "3"
_CHORD: Final = 0b00111110
"""Modifiers with which a key is not text: alt, ctrl, super, hyper, meta."""

_FOCUS: Final = frozenset({"\x1b[I", "\x1b[O"})
_FOCUS_EVENTS: Final = (AppFocus, AppBlur)  # drawing one takes longer than sending hundreds
_MODE: Final = re.compile(r"\x1b\[\?(?:2026|2048);[0-4]\$y")
_MOUSE: Final = re.compile(r"\x1b\[<[0-9]{1,3};[0-9]{1,5};[0-9]{1,5}[Mm]")
_CURSOR: Final = re.compile(r"\x1b\[[0-9]*;[0-9]*R")  # a report that looks like shift+f3
_SIZE: Final = re.compile(r"\x1b\[48" + r";([0-9]{1,5})(?::[0-9:]*)?" * 4 + "t")

_LATIN: Final = {
    ord(key): ord(latin)
    for keys, latins in (
        ("йцукенгшщзфывапролдячсмитьі", "qwertyuiopasdfghjklzxcvbnms"),
        ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
        ("קראטוןםפשדגכעיחלךזסבהנמצ", "ertyuiopasdfghjklzxcvbnm"),
        ("ضصثقفغعهخحشسيبلاتنمئءؤرىة", "qwertyuiopasdfghjklzxcvnm"),
    )
    for key, latin in zip(keys, latins, strict=True)
}
"""Keys of Russian, Ukrainian, Greek, Hebrew and Arabic layouts, for terminals that name no alternate keys."""


def read_terminal(descriptor: int, ended: WakingEvent, take: Callable[[Message], None]) -> None:
    """Pass what the terminal sends to ``take`` until ``ended`` is set or the terminal has gone. May raise OSError."""
    reader = TerminalReader()
    with selectors.SelectSelector() as selector:  # macOS cannot poll a terminal
        selector.register(descriptor, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            patience = reader.patience()
            ready = selector.select(None if patience == math.inf else max(0, patience))
            if ended.is_set():
                return
            if ready:
                try:
                    data = os.read(descriptor, READ_BYTES)
                except BlockingIOError:  # another program made the terminal non-blocking, and was quicker
                    continue
                if not data:
                    return
                messages = reader.feed(data)
            else:
                messages = reader.tick()
            for message in messages:
                take(message)


class WakingEvent(Event):
    """An event that also wakes a selector. Each `set` needs its own `clear`, as Textual's driver has it."""

    def __init__(self) -> None:
        super().__init__()
        self._reading, self._writing = wakeup_pipe()

    def fileno(self) -> int:
        return self._reading

    def set(self) -> None:
        super().set()
        os.write(self._writing, b"\0")

    def clear(self) -> None:
        os.read(self._reading, 1)
        super().clear()


class TerminalReader:
    """Turns the bytes it is fed into messages; `tick` does so with input that has waited longer than `patience`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        self._textual = XTermParser()
        """Fed only complete sequences that it knows, with numbers in its range."""
        self._held = ""
        """Text not yet read, or waiting for its rest."""
        self._fed_at = clock()
        self._paste: list[str] | None = None
        self._dropped_until: re.Pattern[str] | None = None
        """The end of the report that is being dropped."""
        self._dropped_since = 0.0
        self._gave_up_paste = self._gave_up_report = False
        """True if the next input may be the rest of it."""
        self._escape_at: float | None = None
        """When a lone escape was taken for a key; None once more input has come."""

    def feed(self, data: bytes) -> list[Message]:
        self._fed_at = self._clock()
        self._held += self._decode(data)
        if self._paste is None and self._dropped_until is None and self._waits_for_beginning():
            return []
        messages = list(self._read())
        focus = [each for each in messages if isinstance(each, _FOCUS_EVENTS)]
        return [each for each in messages if not isinstance(each, _FOCUS_EVENTS) or each is focus[-1]]

    def tick(self) -> list[Message]:
        return list(self._give_up()) if self.patience() <= 0 else []

    def patience(self) -> float:
        """Seconds until `tick` gives up what has begun; infinite if nothing has."""
        return self._fed_at + self._longest_silence() - self._clock()

    def _longest_silence(self) -> float:
        if self._paste is not None:
            return WAY_OUT_SILENCE if self._way_out(self._held, at_end=True) >= 0 else LONG_SILENCE
        if self._dropped_until is not None:
            return SILENCE if self._fed_at - self._dropped_since < LONGEST else ESCAPE_DELAY
        if not self._held:
            return math.inf
        if self._held == ESC or _SHIFTED_EDIT_KEY.fullmatch(self._held):
            return ESCAPE_DELAY
        return SILENCE if self._escape_at is not None or self._held == _ALT_O else LONG_SILENCE

    def _give_up(self) -> Iterator[Message]:
        held, self._held = self._held, ""
        if self._paste is not None:
            way_out = self._way_out(held, at_end=True)
            text, keys = (held[:way_out], held[way_out:]) if way_out >= 0 else (held, "")
            self._paste.append(text)
            yield self._pasted(self._paste)
            yield from self._ways_out(keys)
            self._gave_up_paste = not keys
        elif self._dropped_until is not None:
            self._dropped_until, self._gave_up_report = None, True
        elif self._escape_at is not None:  # a person typed a bracket after escape
            self._escape_at, self._held = None, held
            yield from self._read()
        elif held == ESC:
            self._escape_at = self._clock()
            yield Key("escape", ESC)
        elif held == _ALT_O:
            yield from self._alt_keys("O")
        elif _SHIFTED_EDIT_KEY.fullmatch(held):
            yield from self._keys(held)

    def _waits_for_beginning(self) -> bool:
        """Recognize the rest of a sequence whose beginning was lost to a long pause, or to the previous program.

        Return True if more input is needed to distinguish it from keys.
        """
        held = self._held
        is_soon = self._escape_at is not None and self._fed_at - self._escape_at <= SILENCE
        if is_soon and _LATE_REST_BEGINS.fullmatch(held):
            self._escape_at = self._fed_at
            return True
        is_long = len(held) >= REST_CHARACTERS and not held.startswith(ESC)
        if self._gave_up_paste and is_long:
            self._paste = []
        elif end := _REPORT_TAIL.match(held):
            self._held = held[end.end() :]
        elif (_LATE_REST if is_soon else _REST).match(held) or (self._gave_up_report and held.startswith("\\")):
            self._held = ESC + held
        elif self._gave_up_report and (is_long or _STRING_END.search(held)):
            self._drop_until(_STRING_END)
        self._escape_at, self._gave_up_paste, self._gave_up_report = None, False, False
        return False

    def _read(self) -> Iterator[Message]:
        before = None
        while self._held and (now := (self._held, self._paste is None, self._dropped_until)) != before:
            before = now
            if self._paste is not None:
                yield from self._read_paste(self._paste)
            elif self._dropped_until is not None:
                self._drop(self._dropped_until)
            else:
                yield from self._read_tokens()

    def _read_paste(self, paste: list[str]) -> Iterator[Message]:
        # Use the last end mark of one read: a web page may put one into its text so that the rest is taken for keys.
        end = self._held.rfind(PASTE_ENDS)
        text = self._held[:end] if end >= 0 else self._held[:-TAIL]
        if sum(map(len, paste)) < PASTE_CHARACTERS:
            paste.append(text)
        if end >= 0:
            self._held = self._held[end + len(PASTE_ENDS) :]
            yield self._pasted(paste)
        else:
            self._held = self._held[-TAIL:]

    def _pasted(self, paste: list[str]) -> Paste:
        self._paste = None
        text = "".join(paste).replace(PASTE_BEGINS, "").replace(PASTE_ENDS, "").replace("\0", "")
        return Paste(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))

    def _drop(self, until: re.Pattern[str]) -> None:
        held = self._held
        end, way_out = until.search(held), self._way_out(held)
        if way_out >= 0 and (end is None or way_out < end.start()):
            self._dropped_until, self._held = None, held[way_out:]
        elif end:
            self._dropped_until, self._held = None, held[end.end() :]
        else:
            tail = held[-TAIL:]
            self._held = tail[tail.find(ESC) :] if ESC in tail else ""

    def _way_out(self, text: str, *, at_end: bool = False) -> int:
        """The index of the first ctrl+c or ctrl+q in a text, or among the keys that end it; negative without one."""
        begin = _KEYS_AT_END.search(text) if at_end else None
        for found in _MAYBE_WAY_OUT.finditer(text, begin.start() if begin else 0):
            if any(self._ways_out(found[0])):
                return found.start()
        return -1

    def _ways_out(self, text: str) -> Iterator[Key]:
        for found in _MAYBE_WAY_OUT.findall(text):
            yield from (key for key in self._keys(found) if key.key in WAYS_OUT)

    def _read_tokens(self) -> Iterator[Message]:
        held, at = self._held, 0
        paste_ends = held.find(PASTE_ENDS)
        if paste_ends >= 0 and not 0 <= held.find(PASTE_BEGINS) < paste_ends:
            self._paste = []  # the mark at its beginning was lost
            return
        while self._paste is None and self._dropped_until is None and (token := _TOKEN.match(held, at)):
            at = token.end()
            yield from self._messages(token)
        self._held = held[at:]
        if len(self._held) > SEQUENCE_CHARACTERS and self._paste is None and self._dropped_until is None:
            self._held = ""
            self._drop_until(_SEQUENCE_END)

    def _drop_until(self, end: re.Pattern[str]) -> None:
        self._dropped_until, self._dropped_since = end, self._fed_at

    def _messages(self, token: re.Match[str]) -> Iterable[Message]:
        text = token[token.lastgroup] if token.lastgroup else ""
        match token.lastgroup:
            case "key":
                return self._keys(text)
            case "undecodable":
                return self._keys("\ufffd")
            case "escape":
                return (Key("escape", ESC),)
            case "alt":
                return self._alt_keys(text)
            case "ss3":  # Konsole names modifiers here
                return self._keys(f"{ESC}O{text}" if len(text) == 1 else f"{ESC}[1;{text.rpartition(';')[2]}")
            case "console" | "csi" | "cut":
                return self._sequence(f"{ESC}[{text}")
            case "string":
                self._drop_until(_STRING_END)
            case "paste":
                self._paste = []
        return ()

    def _sequence(self, sequence: str) -> Iterable[Message]:
        if sequence in _FOCUS or _MODE.fullmatch(sequence) or _MOUSE.fullmatch(sequence):
            return self._textual.feed(sequence)
        if size := _SIZE.fullmatch(sequence):
            return self._resize(*map(int, size.groups()))
        return () if _CURSOR.fullmatch(sequence) else self._keys(sequence)

    def _resize(self, height: int, width: int, pixel_height: int, pixel_width: int) -> Iterable[Message]:
        if not (0 < height <= MOST_CELLS and 0 < width <= MOST_CELLS):
            return ()
        if pixel_height and pixel_width:
            return self._textual.feed(f"{ESC}[48;{height};{width};{pixel_height};{pixel_width}t")
        # Textual would divide by the 0 at the next move of the mouse.
        self._textual.terminal_size, self._textual.terminal_pixel_size = (width, height), None
        return (Resize.from_dimensions((width, height), None),)

    def _alt_keys(self, character: str) -> Iterator[Key]:
        known = [*self._keys(ESC + character)]
        yield from known or self._textual._sequence_to_key_events(character, alt=True)

    def _keys(self, sequence: str) -> Iterator[Key]:
        """The keys of a character or a complete sequence; empty for other sequences."""
        table = ANSI_SEQUENCES_KEYS.get(sequence)
        if found := _KITTY.fullmatch(sequence):
            key, *_, text, end = found.groups(default="")
            name = f"{key or 1}{end}"
            if name in FUNCTIONAL_KEYS or end == "u" or (name == _OTHER_KEY and text.strip(":")):
                sequence = _plain(found)
            else:  # Textual would make a y of `CSI 121 ~`
                yield from (Key(each.value, None) for each in table) if isinstance(table, tuple) else ()
                return
        elif table is None and len(sequence) > 1:
            return
        if sequence:
            keys = self._textual._sequence_to_key_events(sequence)
            yield from (key for key in keys if key.key != Keys.Ignore)


def _plain(found: re.Match[str]) -> str:
    """A key of kitty's protocol in the form that Textual reads; empty if no key was pressed."""
    key, latin, pressed, kind, written, end = found.groups(default="")
    if kind == _RELEASED:
        return ""
    code, modifiers = int(key or 1), max(0, int(pressed or 1) - 1)
    codes = [int(each) for each in written.split(":") if each]
    if f"{code}{end}" == _OTHER_KEY and codes:
        code, end, codes = codes[0], "u", [] if modifiers & _CHORD else codes
    if end != "u":
        codes = []
    elif modifiers & _CHORD and not codes:
        code = _on_latin_layout(code, int(latin or 0))
    codes = [each for each in codes if _is_character(each)]
    if end == "u" and not codes and f"{code}u" not in FUNCTIONAL_KEYS and not _is_character(code):
        return ""
    return f"{ESC}[{code};{pressed};{':'.join(map(str, codes))}".rstrip(";") + end


def _on_latin_layout(code: int, latin: int) -> int:
    """The key that names a shortcut. Letters of a Latin layout keep their names: AZERTY has them elsewhere.

    Signs do not: where a Hebrew or Greek layout has one, the Latin layout has q or w.
    """
    if code < 128 and chr(code).isalnum():
        return code
    return latin if latin < 128 and chr(latin).isalpha() else _LATIN.get(code, code)


def _is_character(code: int) -> bool:
    """True if a code point is a character other than a control character."""
    return 32 <= code < 0x110000 and not (127 <= code < 160 or 0xD800 <= code < 0xE000)
