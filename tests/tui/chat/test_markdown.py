"""Growing Markdown: the end is the same however it came, nothing in it acts, and its cost does not grow with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.tui.chat.items import WrappedLines
from mcphost.tui.chat.markdown import MOST_LINES, GrowingMarkdown
from mcphost.tui.kit.markdown import Line

TEXT = """# Head

A **bold** start,
on two lines.

1. one

   inside one
2. two

| a | b |
|---|---|
| 1 | 2 |

```python
def f():

    return 1
```
After.

~~~json
{"a": 1}
~~~
- x
- y
"""


def grown(text: str, *cuts: int) -> GrowingMarkdown:
    markdown = GrowingMarkdown()
    for cut in (*cuts, len(text)):
        markdown.grow(text[:cut])
    return markdown


def test_text_by_letters_looks_like_text_that_came_whole() -> None:
    whole = grown(TEXT)
    assert grown(TEXT, *range(len(TEXT))).lines == whole.lines
    assert [(code.language, code.text) for code in whole.codes] == [
        ("python", "def f():\n\n    return 1\n"),
        ("json", '{"a": 1}\n'),
    ]
    shown = [line.text for line in whole.lines]
    assert "  def f():" in shown
    assert "a │ b" in shown
    assert "   inside one" in shown


def test_a_line_break_that_the_model_wrote_is_one_on_screen() -> None:
    verse = "The *lamp goes\nround* and round,\nand\n\n- one\n  two\n\n> three\n> four\n"
    lines = grown(verse, *range(len(verse))).lines
    shown = ["The lamp goes", "round and round,", "and", "", "• one", "  two", "", "▌ three", "▌ four"]
    assert [line.text for line in lines] == shown
    assert [line.spans[-1] for line in lines[:2]] == [(4, 13, "em"), (0, 5, "em")]


@pytest.mark.hostile("M01")
@given(
    st.lists(st.sampled_from(["a\n", "\n", "```\n", "- x\n", "  y\n", "~~~\n", "| a |\n", "\u202e", "**b** ", "1. "])),
    st.lists(st.integers(0, 60)),
)
def test_how_it_was_cut_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert grown(text, *sorted(cuts)).lines == grown(text).lines


def test_a_long_text_may_be_rendered_piece_by_piece() -> None:
    text, markdown = "\n\n".join(f"**part** {number}" for number in range(50)), GrowingMarkdown()
    times = 0
    while times == 0 or markdown.behind:
        markdown.grow(text, 0.0)
        times += 1
    assert times == 50
    assert markdown.lines == grown(text).lines


def test_what_came_before_the_last_piece_is_not_made_again() -> None:
    markdown = GrowingMarkdown()
    markdown.grow(TEXT)
    firm = len(markdown.lines)
    assert markdown.grow(TEXT + "\n\nmore") >= firm - 3


@pytest.mark.hostile("M01", "T10", "T11")
@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("\x1b]0;pwned\x07", "␛]0;pwned␇"),
        ("```\n\x1b[2J\n```\n", "  ␛[2J"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("[@click=app.quit]x[/]", "[@click=app.quit]x[/]"),
        ("[Docs](javascript:alert)", "[Docs](javascript:alert)"),
        ("[Docs](https://evil/)", "Docs ⟨https://evil/⟩"),
        ("![see](https://evil/?q=1)", "[image: see] ⟨https://evil/?q=1⟩"),
        ("<b>hi</b>", "<b>hi</b>"),
    ],
)
def test_hostile_words_are_marked_and_do_nothing(text: str, marked: str) -> None:
    for cut in range(len(text)):
        assert marked in [line.text for line in grown(text, cut).lines]


@pytest.mark.parametrize(
    "text", ["x" * 3_000_000, "\n" * 500_000 + "a\n" * 60_000, "```\n" + "y\n" * 60_000, "`" * 50_000]
)
def test_a_flood_is_cut_and_says_how_much_is_left(text: str) -> None:
    markdown = grown(text, *range(0, len(text), len(text) // 50))
    assert len(markdown.lines) <= MOST_LINES + 2
    assert max(len(line.text) for line in markdown.lines) <= 10_000
    if len(text) > 400_000 or text.count("\n") > MOST_LINES:
        assert "more: o shows all of it" in markdown.lines[-1].text


def test_lines_that_are_replaced_are_wrapped_anew_and_no_others() -> None:
    laid = WrappedLines()
    laid.replace(0, [Line("one two three"), Line("four")])
    laid.lay_out(8)
    assert laid.rows == [(0, 0, 7), (0, 8, 13), (1, 0, 4)]
    laid.replace(1, [Line("five six seven")])
    assert laid.rows == [(0, 0, 7), (0, 8, 13), (1, 0, 8), (1, 9, 14)]
    assert (laid.row_of(0, 9), laid.row_of(1, 0)) == (1, 2)
    laid.lay_out(40)
    assert laid.rows == [(0, 0, 13), (1, 0, 14)]
