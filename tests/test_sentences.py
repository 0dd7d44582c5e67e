"""The scanner for translated English finds it, and lets good English pass."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.sentences import PATTERNS, findings, long_sentences, main

FOUND = [
    ("# the file is no server\n", "is no server"),
    ("x = 1\n'''Is it open?'''\n", "Is it open?"),
    ("'''Whether a server answers.'''\n", "Whether a server answers"),
    ("'''It has ended.'''\n", "It has ended"),
    ("'''This is an entry.'''\n", "This is an entry"),
    ("# names of ours\n", "of ours"),
    ("# the model is told\n", "told"),
    ("'''Return a value that tells whether it ran.'''\n", "tells whether"),
    ("# what stands there\n", "stands"),
    ("'''Return the name; empty where there is none.'''\n", "there is none"),
    ("# list it anew\n", "anew"),
    ("# a look at the folder\n", "a look"),
    ("# nobody waits\n", "nobody"),
    ("# a yes is kept\n", "a yes"),
    ("f'{3} is no number'\n", "is no number"),
    ("raise ValueError('mend the file')\n", "mend"),
]
PASSED = [
    "# it is no longer kept, no more than ten\n",
    "# there is no server\n",
    "'''Return what is open.'''\n",
    "'''This process.'''\n",
    "# ``a yes`` and `is no name` are code\n",
    "# ``*`` stands for any text\n",
    "# the server is told to stop\n",
    "# look for it\n",
    "x = 'told'\n",
]


@pytest.mark.parametrize(("source", "words"), FOUND, ids=[words for _, words in FOUND])
def test_translated_english_is_found(tmp_path: Path, source: str, words: str) -> None:
    (tmp_path / "module.py").write_text(source)
    assert [each.words for each in findings(tmp_path / "module.py")] == [words]


@pytest.mark.parametrize("source", PASSED)
def test_good_english_passes(tmp_path: Path, source: str) -> None:
    (tmp_path / "module.py").write_text(source)
    assert [str(each) for each in findings(tmp_path / "module.py")] == []


def test_a_finding_names_place_words_and_replacement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text("x = 1\n\n# list it anew\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"{tmp_path}/module.py:3: 'anew': 'again'\n"


def test_a_clean_folder_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text("A page.\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_code_in_a_document_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("Run it.\n\n```sh\n# list it anew\n```\n\nIt is `anew`, see [x](anew.md).\n")
    assert list(findings(tmp_path / "page.md")) == []


def test_every_pattern_has_a_replacement() -> None:
    assert all(each.instead for each in PATTERNS)


def test_long_sentences_of_a_document_are_found_with_their_line() -> None:
    document = textwrap.dedent(f"""\
        # A page

        A short one.
        A {"word " * 31}end.

        - An item, {"word " * 15}
        - another, {"word " * 15}

        | {"cell " * 20} | {"cell " * 20} |
        """)
    assert [line for line, _ in long_sentences(document)] == [4]
