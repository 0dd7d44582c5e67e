"""Bytes of real terminals: the keys of twelve, reports, and a generator of what no person typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

XTERM = {
    "a": "a", "A": "A", "é": "é", "1": "1", "space": " ", "enter": "\r", "tab": "\t", "backspace": "\x7f",
    "escape": "\x1b", "ctrl+a": "\x01", "ctrl+c": "\x03", "ctrl+q": "\x11", "ctrl+@": "\0",
    "ctrl+underscore": "\x1f", "ctrl+j": "\n", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "home": "\x1b[H", "end": "\x1b[F", "insert": "\x1b[2~", "delete": "\x1b[3~", "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~", "shift+tab": "\x1b[Z", "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS",
    "f5": "\x1b[15~", "f6": "\x1b[17~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
    "shift+up": "\x1b[1;2A", "alt+up": "\x1b[1;3A", "alt+shift+up": "\x1b[1;4A", "ctrl+up": "\x1b[1;5A",
    "ctrl+shift+up": "\x1b[1;6A", "alt+ctrl+up": "\x1b[1;7A", "ctrl+home": "\x1b[1;5H", "ctrl+end": "\x1b[1;5F",
    "ctrl+right": "\x1b[1;5C", "ctrl+delete": "\x1b[3;5~", "shift+delete": "\x1b[3;2~", "ctrl+pageup": "\x1b[5;5~",
    "shift+f1": "\x1b[1;2P", "ctrl+f5": "\x1b[15;5~", "shift+f5": "\x1b[15;2~", "alt+f4": "\x1b[1;3S",
    "alt+a": "\x1ba", "alt+shift+a": "\x1bA", "alt+shift+o": "\x1bO", "alt+x": "\x1bx", "alt+é": "\x1bé",
}  # fmt: skip
RXVT = {
    "home": "\x1b[7~", "end": "\x1b[8~", "f1": "\x1b[11~", "f4": "\x1b[14~", "f5": "\x1b[15~", "shift+tab": "\x1b[Z",
    "shift+up": "\x1b[a", "shift+left": "\x1b[d", "ctrl+right": "\x1bOc", "shift+delete": "\x1b[3$",
    "shift+home": "\x1b[7$", "ctrl+delete": "\x1b[3^", "ctrl+pageup": "\x1b[5^", "ctrl+f1": "\x1b[11^",
    "f13": "\x1b[25~", "f23": "\x1b[23$", "ctrl+f21": "\x1b[23@", "escape up": "\x1b\x1b[A", "enter": "\x1bOM",
    "5": "\x1bOu", "plus": "\x1bOk",
}  # fmt: skip
LINUX = {
    "f1": "\x1b[[A", "f5": "\x1b[[E", "f6": "\x1b[17~", "home": "\x1b[1~", "end": "\x1b[4~", "insert": "\x1b[2~",
    "up": "\x1b[A", "shift+tab": "\x1b\t", "alt+x": "\x1bx", "backspace": "\x7f", "f15": "\x1b[28~", "": "\x1b[G",
}  # fmt: skip
KITTY = {
    "a": "\x1b[97;;97u", "A": "\x1b[97:65;2;65u", "ctrl+q": "\x1b[113;5u", "ctrl+r": "\x1b[114;5:1u",
    "enter": "\x1b[13u", "tab": "\x1b[9u", "shift+tab": "\x1b[9;2u", "escape": "\x1b[27u", "backspace": "\x1b[127u",
    "space": "\x1b[32;;32u", "alt+enter": "\x1b[13;3u", "shift+enter": "\x1b[13;2u", "ctrl+enter": "\x1b[13;5u",
    "up": "\x1b[A", "f1": "\x1b[P", "shift+up": "\x1b[1;2A", "down": "\x1b[1;1:2B", "f3": "\x1b[13~",
    "ctrl+f3": "\x1b[13;5~", "delete": "\x1b[3~", "alt+x": "\x1b[120;3u", "ctrl+c": "\x1b[99;133u",
    "ctrl+shift+a": "\x1b[97:65;6u", "super+a": "\x1b[97;9u", "left_shift": "\x1b[57441;2u",
    "1": "\x1b[57400;129;49u", "f13": "\x1b[57376u", "question_mark": "\x1b[47:63;2;63u", "é": "\x1b[233;;233u",
    "н": "\x1b[1085::121;;1085u", "": "\x1b[97;1:3u", "slash": "\x1b[47;;47u",
}  # fmt: skip
FOOT = {
    "ctrl+q": "\x1b[1081::113;5u", "ctrl+r": "\x1b[1082::114;5u", "ctrl+p": "\x1b[960::112;5u",
    "ctrl+j": "\x1b[1086:1054:106;5u", "alt+r": "\x1b[1082::114;3u", "ctrl+a": "\x1b[97::113;5u",
    "ctrl+slash": "\x1b[47::45;5u", "": "\x1b[113;5:3u",
}  # fmt: skip
HEBREW_AND_GREEK = {"ctrl+q": "\x1b[47::113;5u", "ctrl+w": "\x1b[39::119;5u"}
ITERM = {
    "ctrl+left": "\x1bb", "ctrl+right": "\x1bf", "super+up": "\x1b[1;9A", "alt+up": "\x1b[1;3A", "f1": "\x1bOP",
    "up": "\x1bOA", "home": "\x1bOH", "ctrl+w": "\x1b\x7f", "inverted_exclamation_mark": "\x1b1",
    "delete": "\x1b[3~",
}  # fmt: skip
WINDOWS = {
    "up": "\x1b[A", "shift+tab": "\x1b[Z", "home": "\x1b[~", "ctrl+up": "\x1b[1;5A", "f1": "\x1bOP",
    "shift+f1": "\x1b[1;2P", "backspace": "\x08", "alt+x": "\x1bx", "pageup": "\x1b[5~", "f12": "\x1b[24~",
}  # fmt: skip
TMUX = {
    "home": "\x1b[1~", "end": "\x1b[4~", "f1": "\x1bOP", "ctrl+up": "\x1b[1;5A", "ctrl+q": "\x1b[27;5;113~",
    "ctrl+p": "\x1b[112;5u", "A": "\x1b[27;2;65~", "ctrl+enter": "\x1b[27;5;13~", "ctrl+r": "\x1b[27;5;1082~",
    "ctrl+j": "\x1b[1086;5u", "alt+x": "\x1bx", "shift+f1": "\x1b[1;2P", "ctrl+down": "\x1b[5B",
}  # fmt: skip
SCREEN = {
    "home": "\x1b[1~", "end": "\x1b[4~", "f1": "\x1bOP", "f5": "\x1b[15~", "up": "\x1b[A", "ctrl+right": "\x1b[1;5C",
}  # fmt: skip
PUTTY = {
    "f1": "\x1b[11~", "f5": "\x1b[15~", "home": "\x1b[1~", "end": "\x1b[4~", "up": "\x1bOA",
    "f11": "\x1b[23~", "ctrl+up": "\x1b[1;5A", "alt+x": "\x1bx", "backspace": "\x7f", "insert": "\x1b[2~",
}  # fmt: skip
KONSOLE = {"shift+f1": "\x1bO2P", "ctrl+f4": "\x1bO5S", "f5": "\x1b[15~", "alt+shift+up": "\x1b[1;4A"}

TERMINALS: Mapping[str, Mapping[str, str]] = {
    "xterm, GNOME Terminal": XTERM, "rxvt": RXVT, "Linux console": LINUX, "kitty, Ghostty": KITTY,
    "foot, Alacritty": FOOT, "Hebrew, Greek": HEBREW_AND_GREEK, "iTerm2": ITERM, "Windows Terminal": WINDOWS,
    "tmux": TMUX, "screen": SCREEN, "PuTTY": PUTTY, "Konsole": KONSOLE,
}  # fmt: skip
"""The sequences of each terminal by the name of the key in bindings; `""` causes no key."""

_OSC = [
    "4;1;rgb:aaaa/aaaa/aaaa", "11;rgb:1a1a/1b1b/2626", "10;rgba:ff/ff/ff/ff", "52;c;eW55ZW5hYWE=", "lyes, always",
    "Lannoy", "1337;ReportCellSize=17.5;8.0;2.0", "99;i=1:p=?;y", "22;text", "66;w=2;y", "7;file://host/any",
    "133;A",
]  # fmt: skip
_DCS = [
    "P>|xterm(390y)", "P1$r0 q", "P0$ra", "P1+r544e=787465726d", "P!|7E565445", "P1!u0", "_Gi=31;OK",
    "_Gi=1;ENOENT:any", "^any message", "Xany string",
]  # fmt: skip
_CSI = [
    "?62;22c", "?1;2c", ">41;390;0c", "=0c", "0n", "3n", "?997;1n", "?2031;1$y", "4;2$y", "24;80R", "1;1R",
    "?24;80;1R", "?29u", "8;24;80t", "4;600;800t", "1t", "48;0;0;0;0t", "121~", "97~", "121A", "99B", "0y", "5 q",
    "1;2x", "2;1;1;112;112;1;0x", "106;1:3u", "99999999;1u", "13;1:3u", "55296;1u", "0u", "1u", "1114112;5u",
    "27;1;99999999999~", "?2026;9$y", "<0;0;0M", "<y", "<;;M", "<35;99999999999;1M", ">1u", "=1;1u", "32;10;5M",
    "?u", "121;121;121;121u", "121:::::u", "27;5;:~", "M y!", "M#\udc98*", "M \xe9", "M\xe9!",
]  # fmt: skip

REPORTS: tuple[str, ...] = (
    *(f"\x1b]{body}{end}" for body in _OSC for end in ("\x07", "\x1b\\")),
    *(f"\x1b{body}{end}" for body in _DCS for end in ("\x07", "\x1b\\", "\x9c")),
    *(f"\x1b[{body}" for body in _CSI),
    "\x9d4;1;rgb:aaaa/aaaa/aaaa\x9c", "\udc9d4;1;rgb:aaaa/aaaa/aaaa\udc9c", "\x9b0n", "\udc9b0n",
    "\x90>|xterm(390y)\x1b\\", "\x1b\\", "\x1b]52;c;\x1b[yes\x07", "\x1b]0;a\x1b[31my\x1b\\", "\x1b]11;?\x07",
)  # fmt: skip
"""Input that no person typed, as text in which undecodable bytes are surrogates."""

BROKEN: tuple[bytes, ...] = (
    b"\xff", b"\xe9", b"\xe2\x82", b"\xed\xa0\xbd", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f", b"\x80",
    b"\xc2\x85", b"\xfe\xff",
)  # fmt: skip
"""Bytes that are not UTF-8, and control characters that no key sends."""


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def foreign_input(random: Random, count: int) -> Iterator[list[bytes]]:
    """Reports, pastes and broken bytes, each in the pieces in which it arrives. No person's key is among them.

    A pause after a lone escape would make it one, so none is cut there.
    """
    for _ in range(count):
        data = _whole(random)
        begins = data.index(b"\x1b") + 1 if b"\x1b" in data else 0
        cuts = sorted({random.randrange(1, len(data) + 1) for _ in range(random.randrange(3))} - {begins, len(data)})
        yield [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _whole(random: Random) -> bytes:
    match random.randrange(7):
        case 0 | 1:
            return as_bytes(random.choice(REPORTS))
        case 2:
            return b"\x1b]" + _text(random, b"") + random.choice([b"\x07", b"\x1b\\"])
        case 3:
            return b"\x1b[200~" + _text(random, b"\x1b\r\n\x03\x11\x07\x9b\xff") + b"\x1b[201~"
        case 4:
            numbers = ";".join(str(random.choice([0, 1, 9, 121, 10**9])) for _ in range(random.randrange(4)))
            marked = f"{random.choice('?>=')}{numbers}{random.choice(['c', 'n', 'y', '$y', 'u'])}"
            return b"\x1b[" + marked.encode()
        case 5:
            place = [random.choice([0, 1, 7, 99, 99999]) for _ in range(2)]
            return b"\x1b[<35;%d;%dM" % (place[0], place[1])  # moved without a button
        case _:
            return random.choice(BROKEN) + b"\x1b[I"
    raise AssertionError


def _text(random: Random, more: bytes) -> bytes:
    return bytes(random.choices(b"yuaenqp 1;:/[]?" + more, k=random.randrange(1, 40)))
