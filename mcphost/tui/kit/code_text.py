"""Source code in colours: which language a foreign text is in, and the spans of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from mcphost.lazy_dataclass import dataclass
from mcphost.tui.kit.text_view import TextView, expand_tabs

LONGEST: Final = 50_000
"""Characters; longer texts stay without colours."""

LONGEST_LINE: Final = 1_000
"""Characters; the patterns of some languages are slow on one endless line."""

_ENDINGS: Final[Mapping[str, str]] = {
    "bash": "bash", "c": "c", "cc": "cpp", "cfg": "ini", "conf": "ini", "cpp": "cpp", "cs": "csharp", "css": "css",
    "diff": "diff", "go": "go", "h": "c", "hpp": "cpp", "htm": "html", "html": "html", "ini": "ini", "java": "java",
    "js": "javascript", "jsx": "javascript", "kt": "kotlin", "lua": "lua", "mjs": "javascript", "patch": "diff",
    "php": "php", "pl": "perl", "proto": "protobuf", "py": "python", "pyi": "python", "rb": "ruby", "rs": "rust",
    "scss": "scss", "sh": "bash", "sql": "sql", "svg": "xml", "swift": "swift", "toml": "toml", "ts": "typescript",
    "tsx": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml", "zig": "zig",
}  # fmt: skip
_TYPES: Final[Mapping[str, str]] = {
    "css": "css", "html": "html", "java": "java", "java-source": "java", "javascript": "javascript", "php": "php",
    "python": "python", "ruby": "ruby", "rust": "rust", "script.python": "python", "sh": "bash", "shellscript": "bash",
    "sql": "sql", "svg+xml": "xml", "toml": "toml", "typescript": "typescript", "xml": "xml", "yaml": "yaml",
    "c": "c", "c++": "cpp", "diff": "diff", "go": "go", "csrc": "c", "patch": "diff", "xhtml+xml": "html",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HighlightedCode:
    """The lines of a text that went through ``show``, and the coloured spans of each."""

    lines: Sequence[str]
    spans: Sequence[Sequence[tuple[int, int, str]]]


def language_of(mime_type: str, uri: str) -> str | None:
    """The language by MIME type or, if that says nothing, by the extension of a URI; None if it is not known."""
    kind = mime_type.partition(";")[0].strip().lower()
    family, _, name = kind.partition("/")
    if family in ("text", "application", "image") and name not in ("", "plain", "octet-stream"):
        return _TYPES.get(name.removeprefix("x-")) or _TYPES.get(name)
    path = uri[-500:].partition("?")[0].partition("#")[0]
    stem, dot, ending = path.rpartition(".")
    return _ENDINGS.get(ending.lower()) if dot and stem else None


def colour(text: str, language: str) -> HighlightedCode | None:
    """Find the spans of a text that went through ``show``; None if it is better plain. Slow: call it in a thread."""
    if len(text) > LONGEST or any(len(line) > LONGEST_LINE for line in text.split("\n")):
        return None
    from textual.highlight import highlight  # late: it loads pygments

    lines = highlight("\n".join(map(expand_tabs, text.split("\n"))), language=language).split("\n", allow_blank=True)
    parts = [
        [(span.start, span.end, part) for span in line.spans if (part := _part(str(span.style)))] for line in lines
    ]
    return HighlightedCode([line.plain for line in lines], parts)


class CodeView(TextView):
    """Shows a `HighlightedCode`, as high as it is."""

    DEFAULT_CSS = """
    CodeView > .text-view--name { color: $text-primary; }
    CodeView > .text-view--keyword { color: $text-accent; text-style: bold; }
    CodeView > .text-view--comment { color: $foreground-muted; text-style: italic; }
    CodeView > .text-view--definition { color: $text-warning; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"text-view--{part}" for part in ("name", "keyword", "comment", "definition")
    }

    def __init__(self, code: HighlightedCode) -> None:
        self._code = code
        super().__init__(code.lines, fit=True)

    def spans_of(self, number: int, text: str) -> Iterable[tuple[int, int, str]]:
        return self._code.spans[number] if number < len(self._code.spans) else ()


_PARTS: Final = (
    ("$text 60%", "comment"),
    ("$text-success", "string"),
    ("$text-warning bold", "definition"),
    ("$text-warning underline", "definition"),
    ("$text-warning", "number"),
    ("$text-accent", "keyword"),
    ("$text-error", "keyword"),
    ("$text-primary bold", "definition"),
    ("$text-primary", "name"),
)
"""Maps Textual's highlight styles, by their beginnings, to the names of our component styles."""


def _part(style: str) -> str | None:
    return next((part for start, part in _PARTS if style.removeprefix("bold ").startswith(start)), None)
