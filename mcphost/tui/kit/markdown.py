"""Renders foreign Markdown as lines, so that nothing in it acts, hides text or takes long.

Textual's Markdown mounts a widget for each block; see `mcphost.tui.chat.transcript` for what that costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.text_view import TextView

LONGEST: Final = 50_000
"""Characters; hostile texts of this length take the parser a second."""
AT_ONCE: Final = 4_000
"""Characters that render within a frame, whatever they are; longer texts belong in a thread."""

_DEEPEST: Final = 20
_MAY_BE_MISSING: Final = 40
"""Letters that may be missing in the rendering, such as reference labels, before it is rejected."""
_COLUMN: Final = 40

_FEATURES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), weight)
    for pattern, weight in (
        (r"^#{1,6} \S", 1),
        (r"^(```|~~~)", 2),
        (r"^\|?[ :]*-{3,}[ :]*\|", 2),
        (r"^ {0,8}(?:[-*+]|\d{1,3}[.)]) \S.*\n+ {0,8}(?:[-*+]|\d{1,3}[.)]) \S", 1),
        (r"\*\*[^*\n]{1,200}\*\*", 1),
        (r"\[[^\]\n]{1,200}\]\([^)\s]{1,300}\)", 1),
        (r"^> \S", 1),
    )
)
_ORDINAL: Final = re.compile(r"^\s*\d{1,9}[.)] ", re.MULTILINE)

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A rendered line; ``hang`` is drawn before each further row when it wraps."""

    text: str
    spans: tuple[Span, ...] = ()
    hang: str = ""


def looks_like_markdown(text: str) -> bool:
    """True for two signs of Markdown, or one that nothing else has. Only the beginning is searched."""
    sample = text[:5_000]
    return sum(weight for feature, weight in _FEATURES if feature.search(sample)) >= 2


def render_markdown(text: str, *, breaks: bool = False) -> tuple[Line, ...] | None:
    """Render a text that went through ``show``; None if it is better read as it was sent.

    ``breaks`` keeps the line breaks inside paragraphs, which models mean; files are wrapped at some column instead.
    Slow for long texts: see `AT_ONCE`.
    """
    if len(text) > LONGEST:
        return None
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"]).disable(["entity", "html_inline", "html_block"])
    tokens = parser.parse(text)
    if any(token.level >= _DEEPEST - 1 for token in tokens):  # anything nested deeper was left out
        return None
    lines = tuple(_Writer(breaks).write(tokens))
    missing = _letters(_ORDINAL.sub("", text)) - sum(_letters(line.text) for line in lines)
    return lines if missing <= _MAY_BE_MISSING else None


class MarkdownView(TextView):
    """Shows lines of `render_markdown`; with ``fit`` as high as they are, for a parent that scrolls."""

    DEFAULT_CSS = """
    MarkdownView > .text-view--heading { color: $text-primary; text-style: bold; }
    MarkdownView > .text-view--strong { text-style: bold; }
    MarkdownView > .text-view--em { text-style: italic; }
    MarkdownView > .text-view--strike { text-style: strike; }
    MarkdownView > .text-view--code { background: $panel; color: $text-warning; }
    MarkdownView > .text-view--link { color: $text-accent; }
    MarkdownView > .text-view--mark { color: $text-primary; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"text-view--{part}" for part in ("heading", "strong", "em", "strike", "code", "link", "mark")
    }

    def __init__(self, lines: Sequence[Line], *, fit: bool = True) -> None:
        self._rendered = lines
        super().__init__([line.text for line in lines], fit=fit)

    def spans_of(self, number: int, text: str) -> Iterable[Span]:
        return self._rendered[number].spans

    def hang_of(self, number: int) -> str:
        """Align further rows with the text of a list item, not with its bullet."""
        return self._rendered[number].hang


class _Writer:
    """Turns the parser's tokens into lines."""

    def __init__(self, breaks: bool) -> None:
        self._breaks = breaks
        self._prefixes: list[tuple[str, str]] = []
        """The prefix of the first line and that of the others, for each open quote and list item."""
        self._lists: list[int | None] = []
        self._table: list[list[str]] = []
        self._heading = False
        self._gap: int | None = None
        """Set if a blank line is due: within how many of the prefixes."""

    def write(self, tokens: Sequence[Token]) -> Iterator[Line]:
        for token in tokens:
            self._open_or_close(token)
            if token.type == "inline" and self._table:
                self._table[-1].append(_plain(token.children or []))
            elif token.type == "inline":
                yield from self._paragraph(token.children or [])
            elif token.type in ("fence", "code_block"):
                yield from self._code(token)
            elif token.type == "hr":
                yield from self._block([("─" * 20, [(0, 20, "mark")])])
            elif token.type == "table_close":
                yield from self._rows()
            elif token.type in ("paragraph_close", "heading_close", "bullet_list_close", "ordered_list_close"):
                self._end_block(not token.hidden and (not self._lists or token.type.endswith("list_close")))

    def _open_or_close(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrGet("start") or 1))
            case "list_item_open":
                self._prefixes.append(self._bullet())
            case "blockquote_open":
                self._prefixes.append(("▌ ", "▌ "))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_close" | "blockquote_close":
                self._prefixes.pop()
            case "heading_open" | "heading_close":
                self._heading = token.nesting == 1
            case "tr_open":
                self._table.append([])

    def _bullet(self) -> tuple[str, str]:
        number = self._lists[-1]
        if number is None:
            return "• ", "  "
        self._lists[-1] = number + 1
        mark = f"{number}. "
        return mark, " " * len(mark)

    def _paragraph(self, parts: Iterable[Token]) -> Iterator[Line]:
        lines = list(_inline(parts, self._breaks))
        if self._heading:
            lines = [(text, [(0, len(text), "heading"), *spans]) for text, spans in lines]
        return self._block(lines)

    def _code(self, token: Token) -> Iterator[Line]:
        language = show(token.info.strip())
        texts = show(token.content).rstrip("\n").split("\n")
        lines = [(f"  {text}", [(2, 2 + len(text), "code"), *_shifted(text, language)]) for text in texts]
        yield from self._block([(language, [(0, len(language), "mark")]), *lines] if language else lines)
        self._end_block(True)

    def _rows(self) -> Iterator[Line]:
        rows, self._table = self._table, []
        widths = [min(max(map(cell_len, column)), _COLUMN) for column in zip(*rows, strict=False)]
        lines = [" │ ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=False)) for row in rows]
        rule = "─┼─".join("─" * width for width in widths)
        head = [(lines[0], [(0, len(lines[0]), "strong")]), (rule, [(0, len(rule), "mark")])]
        yield from self._block([*head, *((line, []) for line in lines[1:])])
        self._end_block(True)

    def _end_block(self, gap: bool) -> None:
        self._gap = len(self._prefixes) if gap else None

    def _block(self, lines: Iterable[tuple[str, list[Span]]]) -> Iterator[Line]:
        if self._gap is not None:
            bars = "".join(rest for _, rest in self._prefixes[: self._gap]).rstrip()
            yield Line(bars, ((0, len(bars), "mark"),))
        self._gap = None
        for text, spans in lines:
            prefix, hang = (
                (("".join(each)) for each in zip(*self._prefixes, strict=True)) if self._prefixes else ("", "")
            )
            self._prefixes = [(rest, rest) for _, rest in self._prefixes]
            moved = ((start + len(prefix), end + len(prefix), part) for start, end, part in spans)
            yield Line(prefix + text, ((0, len(prefix), "mark"), *moved), hang)


_STYLES: Final = {"em": "em", "strong": "strong", "s": "strike", "link": "link"}


def _inline(parts: Iterable[Token], breaks: bool = False) -> Iterator[tuple[str, list[Span]]]:
    """The lines of a paragraph; links are followed by their targets, images become description and address."""
    text, spans, opened, targets = "", list[Span](), list[tuple[int, str]](), list[str]()
    for part in parts:
        kind, _, side = part.type.rpartition("_")
        if part.type == "hardbreak" or (part.type == "softbreak" and breaks):
            yield text, [*spans, *((start, len(text), style) for start, style in opened)]
            text, spans, opened = "", [], [(0, style) for _, style in opened]
        elif side == "open" and kind in _STYLES:
            opened.append((len(text), _STYLES[kind]))
            targets.append(_target(part, "href"))
        elif side == "close" and kind in _STYLES:
            (start, style), target = opened.pop(), targets.pop()
            spans.append((start, len(text), style))
            text += f" ⟨{target}⟩" if kind == "link" and text[start:] != target else ""
        else:
            piece = _piece(part)
            spans += [(len(text), len(text) + len(piece), "code")] if part.type == "code_inline" else []
            text += piece
    yield text, spans


def _piece(part: Token) -> str:
    # `show` again: an entity or a percent-encoded sequence may spell what it removed
    if part.type == "softbreak":
        return " "
    if part.type == "image":
        return f"[image: {show(part.content)}] ⟨{_target(part, 'src')}⟩"
    return show(part.content, joiners=True)


def _plain(parts: Iterable[Token]) -> str:
    return " ".join(text for text, _ in _inline(parts))


def _target(token: Token, name: str) -> str:
    title = token.attrGet("title")
    return show(str(token.attrGet(name) or "")) + (f" {show(str(title))}" if title else "")


def _shifted(text: str, language: str) -> Iterator[Span]:
    if language == "json":
        yield from ((start + 2, end + 2, part) for start, end, part in json_spans(text))


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
