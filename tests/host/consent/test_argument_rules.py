"""Rules by argument: when they fit, which patterns are none, and what is suggested."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.host.consent.argument_rules import fits, in_words, left_open, problem, suggested


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(
    ("when", "arguments", "fit"),
    [
        ({"sql": r"^SELECT\b"}, {"sql": "SELECT 1", "limit": 3}, True),
        ({"sql": r"^SELECT\b"}, {"sql": "SELECTED"}, False),
        ({"sql": r"^SELECT\b"}, {"sql": "x\nSELECT 1"}, False),
        ({"sql": "^SELECT$"}, {"sql": "SELECT\n"}, False),
        ({"sql": "."}, {"sql": ["SELECT 1"]}, False),
        ({"sql": "."}, {"sql": None}, False),
        ({"sql": "."}, {"SQL": "SELECT 1"}, False),
        ({"a": "x", "b": "y"}, {"a": "x"}, False),
        ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, True),
        ({}, {"a": "x"}, False),
        ({"a": "("}, {"a": "("}, False),
        ({"a": "(a+)+$"}, {"a": "a" * 50_000 + "!"}, False),
        ({"a": "^(?=a)"}, {"a": "a"}, False),
        ({"a": "x"}, {"a": "x" * 10_000_000}, False),
        ({"a": "."}, {"a": "\ud800"}, False),
        ({"\ud800": "."}, {"\ud800": "x"}, False),
    ],
)
def test_a_rule_fits_where_every_text_it_names_is_there_and_matches(
    when: dict[str, str], arguments: dict[str, Any], fit: bool
) -> None:
    """A pattern that cannot be tried at once does not match, and a rule that names nothing fits nothing."""
    assert fits(when, arguments) is fit


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "is empty"), ("(", "is not a regular expression"), (r"\q", "is not a regular expression"),
        ("(?=a)", "takes too long to try"), ("(a{999}){999}", "takes too long to try"),
        ("x" * 2001, "has more than 2,000 characters"), ("\ud800", "takes too long to try"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_kept_is_refused_with_a_sentence(pattern: str, words: str) -> None:
    assert problem({"ok": "^a$", "b\x1b": pattern}).startswith(f"the pattern for b␛ {words}")


def test_patterns_that_are_too_much_together_are_refused() -> None:
    assert not problem({"a": "a{2000}"})
    assert problem({name: f"{name}{{2000}}" for name in "abc"}) == "the patterns together take too long to try"


@pytest.mark.hostile("T08")
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("SELECT *\nFROM t", r"^SELECT\b"), ("main", "^main$"), ("", "^$"), ("/a b/c.txt", r"^/a b/c\.txt$"),
        ("a\n\t\r", r"^a\n\t\r$"), (r".*+?^${}()|[]\-#/", r"^\.\*\+\?\^\$\{\}\(\)\|\[\]\\-#/$"),
        ("a\u200b\x1b\u2028", r"^a\u200b\u001b\u2028$"), ("a\U000e0041", r"^a\u{e0041}$"), ("é🜂", "^é🜂$"),
        ("x" * 500, "^" + "x" * 60),
    ],
)  # fmt: skip
def test_a_suggestion_can_be_read_and_matches_the_text_it_is_made_of(text: str, pattern: str) -> None:
    """Nothing in it is unseen."""
    assert suggested(text) == pattern
    assert not problem({"a": pattern})
    assert fits({"a": pattern}, {"a": text})


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^a$", ""), ("^(a|b)$", ""), ("^[|]$", ""), (r"^a\|$", ""), (r"^a\$", "after it"), ("a$", "before it"),
        (r"^SELECT\b", "after it"), ("a", "before it or after it"), ("^a|b$", "before it or after it"),
        ("^(?m)a$", "before it or after it"), ("^(?i)a$", ""), ("^(?P<x>a)$", ""),
    ],
)  # fmt: skip
def test_what_a_pattern_leaves_open_is_told(pattern: str, words: str) -> None:
    assert left_open(pattern) == words


@pytest.mark.hostile("T08")
def test_a_rule_in_words_is_safe_to_show() -> None:
    assert in_words({"a\n": "^\x1b$", "b": "c"}) == "a⏎ matches '^␛$', b matches 'c'"
