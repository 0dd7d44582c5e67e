"""A changed field of a tool's definition: its value before and after, with the words that differ marked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.content import Content

from mcphost.host.consent.definition_diff import Difference
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.facts_table import Fact, fact

SHOWN_CHARACTERS: Final = 1_500
"""Of a value. Of a longer one, only the end of what comes before the change is shown, so that the change is seen."""

LEAD: Final = 300
"""Characters before the change in a longer value."""

LONGEST_WORD: Final = 40
"""Characters; a change inside a longer word is marked without all of that word."""

CHANGED_STYLE: Final = "reverse"
"""Of the words that differ; it shows without colours too."""


def difference_facts(difference: Difference) -> Iterator[Fact]:
    """The field, and its value before and after: side by side where there is room."""
    yield fact("changed", show_line(difference.field, 80), "bold")
    before, after = difference.before, difference.after
    if before is not None and after is not None:
        start, end = common_ends(before, after)
        skip = max(0, start - LEAD) if max(len(before), len(after)) > SHOWN_CHARACTERS else 0
        was, now = _value(before, skip, start, end), _value(after, skip, start, end)
        yield Fact("", _lines("-", "$text-error", was), other=_lines("+", "$text-success", now))
    elif before is not None:
        yield Fact("", _lines("-", "$text-error", _value(before)))
    elif after is not None:
        yield Fact("", _lines("+", "$text-success", _value(after)))


def is_shown_whole(difference: Difference) -> bool:
    """True if `difference_facts` shows all of the new value."""
    return difference.after is not None and len(difference.after) <= SHOWN_CHARACTERS


def common_ends(before: str, after: str) -> tuple[int, int]:
    """The numbers of characters, in whole words, with which both texts begin and end."""
    shorter = min(len(before), len(after))
    start = _at_word(before, after, _common(before, after, shorter))
    before, after = before[::-1], after[::-1]
    return start, _at_word(before, after, _common(before, after, shorter - start))


def _common(one: str, other: str, most: int) -> int:
    """The length of the common beginning, by halves: texts may be megabytes long."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _at_word(one: str, other: str, at: int) -> int:
    """The place before the word that is cut at ``at``."""
    if not (one[at : at + 1].isalnum() or other[at : at + 1].isalnum()):
        return at
    back = next((back for back in range(LONGEST_WORD) if back == at or not one[at - back - 1].isalnum()), 0)
    return at - back


def _value(text: str, skip: int = 0, start: int = 0, end: int = 0) -> Content:
    """The text as it is shown from ``skip`` on. What is between ``start`` and the last ``end`` characters is marked."""
    stop = len(text) - end
    before, changed, after = text[skip:start], text[start:stop], text[stop:]
    return Content.assemble(
        "… " if skip else "",
        show(before),
        (show(changed, limit=SHOWN_CHARACTERS), CHANGED_STYLE if start or end else ""),
        show(after, limit=SHOWN_CHARACTERS),
    )


def _lines(mark: str, style: str, value: Content) -> Content:
    lines = value.split("\n", allow_blank=True)
    return Content("\n").join(Content.assemble(f"{mark} ", line).stylize_before(style) for line in lines)
