"""Finds English that reads as translated: ``python -m tests.sentences PATH…``, files or folders.

Prints each place with the words found and what to write instead, and exits with 1 if there are any. Read are
docstrings, comments, texts for the screen, Markdown, and the last column of tables.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ("tests", "mcphost/demo")
"""Folders whose strings are data: texts of tests, and the words of the demo's lighthouse."""
ON_THE_WIRE = re.compile("nobody waits for the answer")
"""Texts that servers receive, and that stay as they are."""
LONGEST = 30
"""Words of a sentence in a document."""


@dataclass(frozen=True)
class Pattern:
    """Words that a native writer would not use here."""

    name: str
    words: re.Pattern[str]
    instead: str


@dataclass(frozen=True)
class Finding:
    """A place where one of the patterns matches."""

    path: Path
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}: {self.instead}"


def anywhere(name: str, words: str, instead: str) -> Pattern:
    return Pattern(name, re.compile(words, re.IGNORECASE), instead)


def first(name: str, words: str, instead: str) -> Pattern:
    return Pattern(name, re.compile(words), instead)


BEFORE_NO = r"(?<!there )(?<!there's )"
AFTER_NO = "(?!longer|more|less|other|one|way|need|doubt|matter|different|better|worse|fewer|later|sooner|earlier)"

WORDS = (
    anywhere("is no X", rf"{BEFORE_NO}\b(is|are|was|were) no {AFTER_NO}[a-z-]+", "'is not a …', 'are not …'"),
    anywhere("of ours", r"\bof ours\b", "'our …', or name whose it is"),
    anywhere("told", r"\btold\b(?! to \w)", "'reported', 'notified', 'shown', 'says'; or name who says it to whom"),
    anywhere("tells", r"\btells (of|that|whether|what|how|where|why|which|it|this|them)\b(?![^.]* (apart|from) )",
             "'reports', 'says', 'shows'; for a boolean 'True if …'"),
    anywhere("stands", r"\bstands\b(?! (for|out|alone|in for)\b)|\b(that|which|who|they|where) stand\b(?! (for|out)\b)",
             "'is'; 'applies' or 'holds' where that is meant"),
    anywhere("there is none", r"\bthere (is|are|was|were) none\b", "'None if missing', 'if it does not exist'"),
    anywhere("anew", r"\banew\b", "'again'"),
    anywhere("mend", r"\bmend(s|ed|ing)?\b", "'fix', 'repair'"),
    anywhere("look as a noun",
             r"\b(a|one|each|every|the|next|last|another|first|second|no|per|new|two|three|several|six) looks?\b(?!-)",
             "'check', 'lookup', 'read'"),
    anywhere("somebody", r"\b(somebody|nobody)\b",
             "'the user', 'a caller', or the passive; 'no user', 'no one' where it cannot be avoided"),
    anywhere("a no", r"\b(a|the|each|every|such a|one) (yes|no)\b(?![-/\w]| \w+ at| such)(?=[\s.,:;)]|$)",
             "'a refusal', 'a decline'; 'an approval'"),
)  # fmt: skip
"""Patterns for every kind of text."""

ASKS = "Is|Are|Was|Were|Do|Does|Did|Has|Have|Had|Can|Could|May|Might|Must|Shall|Should|Will|Would|Who|Which|Where"
VERB = "is|are|was|were|has|have|had|may|can|must|will|would|does|do|did|holds|means|makes|comes|goes|lets|keeps"

BEGINNINGS = (
    first("question", rf"\A({ASKS})\b[^.?]*\?", "'True if …', or no docstring"),
    first("What …", r"\A(What|Whether|How|Who|Whom|Whose)\b[^.?]*", "begin with the noun or the verb that it is about"),
    first("pronoun", rf"\A((It|They|He|She|We|I)\b|(This|That|These|Those) ({VERB})\b)[^.?]*",
          "begin with the noun"),
)  # fmt: skip
"""Patterns for the beginning of a docstring."""

PATTERNS = (*WORDS, *BEGINNINGS)

CODE = re.compile(r"``.+?``|`[^`\n]+`|https?://\S+", re.DOTALL)
QUOTED = re.compile(r'"[^"\n]{1,80}"|“[^”]*”')
FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"\]\([^)]*\)")
PROSE = re.compile(r"[A-Za-z]{2,} [A-Za-z]")
STRING_OR_COMMENT = re.compile(r"""(?s:(\"{3}|'{3}|"|')(?:\\.|[^\\])*?\1)|(#.*)""")
"""Finds the comments of Python; what is in a string is not one. Its own tokenizer takes twenty times as long."""


ENDS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*>#|]|\d+\.) ?)|\||(?<=[.!?:])\s+(?=[\W\d]*[A-Z]|code)")
"""Where a sentence of a document ends."""


@dataclass(frozen=True)
class Text:
    """Something written for people, and the line where it begins."""

    line: int
    words: str
    is_docstring: bool = False


def findings(path: Path) -> Iterator[Finding]:
    """Yield what is wrong in a file, by its lines."""
    found = [finding for text in texts(path) for finding in _findings(path, text)]
    yield from sorted(found, key=lambda each: each.line)


def _findings(path: Path, text: Text) -> Iterator[Finding]:
    words = _without(ON_THE_WIRE, _without(CODE, text.words))
    plain = _without(QUOTED, words)
    for pattern in WORDS:
        for match in pattern.words.finditer(plain):
            yield Finding(path, text.line + plain.count("\n", 0, match.start()), shown(match[0]), pattern.instead)
    for pattern in BEGINNINGS if text.is_docstring else ():
        if begins := pattern.words.search(words.strip()):
            yield Finding(path, text.line, shown(begins[0]), pattern.instead)


def shown(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= 60 else f"{words[:59]}…"


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Blank what matches, and keep the lines."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", "_", match[0]), text)


def texts(path: Path) -> Iterator[Text]:
    """Yield what a file has written for people."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        yield Text(1, _without(TARGET, _without(FENCE, source)))
    elif path.suffix == ".tsv":
        lines = enumerate(source.splitlines(), 1)
        yield from (Text(number, line.rpartition("\t")[2]) for number, line in lines)
    else:
        tree = ast.parse(source)
        notes = {id(each): each for each in docstrings(tree)}
        yield from (Text(each.lineno, str(each.value), True) for each in notes.values())
        yield from (Text(each.line, each.words.lstrip("# ")) for each in comments(source))
        if not any(path.resolve().is_relative_to(ROOT / folder) for folder in DATA):
            yield from strings(tree, notes)


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield docstrings, and the strings below constants and fields that describe them."""
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield all statements; expressions, which are most of a tree, are not searched for more."""
    blocks: list[ast.AST] = [tree]
    for block in blocks:
        if isinstance(block, ast.stmt):
            yield block
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(block, name, ())
            if isinstance(found, list):
                blocks += found


def comments(source: str) -> Iterator[Text]:
    """Yield the comments of a module, each with its ``#``."""
    for match in STRING_OR_COMMENT.finditer(source):
        if match[2]:
            yield Text(source.count("\n", 0, match.start()) + 1, match[2])


def strings(node: ast.AST, notes: dict[int, ast.Constant]) -> Iterator[Text]:
    """Yield strings of at least two words; the values in an f-string are left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            parts = [str(each.value) if isinstance(each, ast.Constant) else "_" for each in child.values]
            yield from _prose(child.lineno, "".join(parts))
            for each in child.values:
                if not isinstance(each, ast.Constant):
                    yield from strings(each, notes)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            if id(child) not in notes:
                yield from _prose(child.lineno, child.value)
        else:
            yield from strings(child, notes)


def _prose(line: int, words: str) -> Iterator[Text]:
    if PROSE.search(words):
        # The lines of a string are not those of its source.
        yield Text(line, words.replace("\n", " "))


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the Python and Markdown files and the tables among and below these paths."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (each for each in found if each.suffix in (".py", ".md", ".tsv"))


def long_sentences(document: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each sentence with more words than `LONGEST`."""
    for line, sentence in sentences(document):
        if len(re.findall(r"\w[\w'’.-]*", sentence)) > LONGEST:
            yield line, sentence


def sentences(document: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a Markdown document; inline code counts as one word, cells and items are apart."""
    text = _without(FENCE, document)
    text = CODE.sub(lambda match: "code" + "\n" * match[0].count("\n"), TARGET.sub("]", text))
    ends = [match.end() for match in ENDS.finditer(text)]
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        if words := text[start:end].strip(" \n|"):
            yield text.count("\n", 0, start) + 1, words


def main(arguments: list[str]) -> int:
    """Print what is found; return the exit code."""
    found = [each for path in files(map(Path, arguments)) for each in findings(path)]
    print("\n".join(map(str, found)), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["mcphost", "tests"]))
