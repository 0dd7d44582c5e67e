"""Two answers compared as JSON: what differs, where, and what does not count."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.host.verification.answers import AnswerDifferences, AnswerRules, aligned, compare_answers, path_words
from mcphost.host.verification.normalizers import NORMALIZERS, known_names, named_normalizers
from mcphost.protocol.json_paths import JsonPath
from mcphost.redaction import MASK, fits_masked

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
DEFAULT = AnswerRules(normalizers=NORMALIZERS)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def words(found: AnswerDifferences) -> list[str]:
    return [each.words for each in found.differences]


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (
            {"structuredContent": {"rows": [{"name": "x"}, {"name": "a"}]}},
            {"structuredContent": {"rows": [{"name": "x"}, {"name": "b"}]}},
            ['structuredContent.rows[1].name: expected "a", got "b"'],
        ),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["a: expected 1, got true"]),
        ({"a": 1}, {}, ["a: expected 1, and it is missing"]),
        ({}, {"two words": [1]}, ['["two words"]: not expected, got [1]']),
        ({"a": None}, {}, ["a: expected null, and it is missing"]),
        ({"a": [1]}, {"a": {"0": 1}}, ['a: expected [1], got {"0": 1}']),
        (text('{"b": 1, "a": [2]}'), text('{"a": [2.0],\n "b": 1}'), []),
        (text('{"a": [2]}'), text('{"a": [3]}'), ["content[0].text.a[0]: expected 2, got 3"]),
        (text("[1]"), text("1"), ['content[0].text: expected "[1]", got "1"']),
        ([1, 2, 3], [1, 9, 2, 3], ["[1]: not expected, got 9"]),
        ([1, 2, 3], [2, 3], ["[0]: expected 1, and it is missing"]),
        (["a\x1b[2J"], ["b"], ['[0]: expected "a\\u001b[2J", got "b"']),
    ],
)
def test_each_difference_is_named_by_its_place(expected: Any, got: Any, said: list[str]) -> None:
    assert words(compare_answers(expected, got)) == said


def test_media_are_compared_by_their_bytes() -> None:
    one, other = b64encode(b"one").decode(), b64encode(b"three").decode()
    picture = {"type": "image", "data": one}
    assert not compare_answers(picture, {**picture, "data": f"{one[:2]}\n{one[2:]}"}).differences
    (said,) = words(compare_answers({"blob": one}, {"blob": other}))
    assert said.startswith("blob: expected 3 B with SHA-256 7692c3ad3540…, got 5 B with SHA-256 ")


def test_long_texts_are_shown_around_their_difference() -> None:
    (said,) = words(compare_answers("x" * 5000 + "a" + "y" * 5000, "x" * 5000 + "b" + "y" * 5000))
    assert len(said) < 500
    assert "xa" in said
    assert "xb" in said


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("uuid", "id 6fa459ea-ee8a-3ca4-894e-db77e160355e.", "id 16fd2706-8baf-433b-82eb-8c7fada847da."),
        ("iso-time", "at 2026-11-27T14:05:30.123Z", "at 2026-12-01 09:00:00+01:00"),
        ("iso-time", "page-2026-11-27T16-17-34-597Z.yml", "page-2026-11-27T16-17-51-913Z.yml"),
        ("hex", "commit 9f8e7d6c5b4a39281706", "commit 0011223344556677"),
        ("port", "http://127.0.0.1:41231/mcp", "http://127.0.0.1:80/mcp"),
        ("port", "listening on port 41231", "listening on port 99"),
        ("temp-path", "wrote /tmp/tmp.Ab12/out.txt", "wrote /tmp/tmp.Zz/out.txt"),
        ("temp-path", r"in C:\Users\ada\AppData\Local\Temp\x1\a", r"in C:\Users\bob\AppData\Local\Temp\y\a"),
        ("duration", "took 12.5 ms in all", "took 1 s in all"),
    ],
)
def test_a_normalizer_hides_its_kind_and_counts_it(name: str, before: str, after: str) -> None:
    found = compare_answers(text(before), text(after), DEFAULT)
    assert (found.differences, found.counts) == ((), {name: 1})
    assert found.hidden[0].words.startswith(f"{name}: content[0].text: ")
    others = AnswerRules(normalizers=tuple(each for each in NORMALIZERS if each.name != name))
    assert compare_answers(text(before), text(after), others).differences


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/tmp/a/one.txt", "/tmp/a/two.txt"),
        ("2026-11-27", "2026-11-28"),
        ("port 80 open", "port 80 shut"),
        ("v12", "v13"),
        ("5 items", "6 items"),
        ("id abcdef0123", "id abcdef0124"),
        ("took 5 ms", "took nothing"),
    ],
)
def test_the_normalizers_hide_nothing_else(before: str, after: str) -> None:
    assert compare_answers(text(before), text(after), DEFAULT).differences


def test_an_ignored_path_hides_what_it_names_alone() -> None:
    rules = AnswerRules((JsonPath.parse("$.content[*].text.id"),))
    found = compare_answers(text('{"id": 1, "n": 2}'), text('{"id": 9, "n": 3}'), rules)
    assert words(found) == ["content[0].text.n: expected 2, got 3"]
    assert found.counts == {"--ignore $.content[*].text.id": 1}


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ({"token": MASK}, {"token": "abc"}, True),
        ({"token": MASK}, {"token": {"a": 1}}, True),
        ({"token": MASK}, {}, False),
        (f"Bearer {MASK}; ok", "Bearer xyz; ok", True),
        (f"Bearer {MASK}; ok", "Bearer xyz; no", False),
        (text(f'{{"key": "{MASK}", "n": 1}}'), text('{"n": 1, "key": "k"}'), True),
    ],
)
def test_a_masked_value_matches_anything_in_its_place(expected: Any, got: Any, same: bool) -> None:
    found = compare_answers(expected, got, DEFAULT)
    assert (not found.differences) is same
    assert found.counts == ({"masked": 1} if same else {})


@given(st.lists(st.tuples(st.text("ab", max_size=3), st.text("ab", max_size=3)), min_size=1))
def test_masks_fit_what_they_replaced(parts: list[tuple[str, str]]) -> None:
    masked, plain = (separator.join(kept for kept, _ in parts) for separator in (MASK, ""))
    assert fits_masked(masked, "".join(f"{kept}{hidden}" for kept, hidden in parts[:-1]) + parts[-1][0])
    assert fits_masked(masked, plain)
    assert not fits_masked(f"c{masked}", plain)


@given(JSON)
def test_a_value_equals_itself_after_a_round_through_a_file(value: Any) -> None:
    assert not compare_answers(value, json.loads(json.dumps(value)), DEFAULT).differences


@given(JSON, JSON)
def test_different_values_never_pass_for_equal(one: Any, other: Any) -> None:
    found = compare_answers(one, other)
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert not (same and found.differences)
    assert bool(found.differences) == bool(compare_answers(other, one).differences)


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_alignment_loses_no_item(one: list[int], other: list[int]) -> None:
    pairs = [pair for _, pair in aligned(one, other)]
    assert [first for first, _ in pairs if isinstance(first, int)] == one
    assert [second for _, second in pairs if isinstance(second, int)] == other


def test_partial_expectations_allow_more_members() -> None:
    rules = AnswerRules(partial=True)
    assert not compare_answers({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, rules).differences
    assert words(compare_answers({"a": [1]}, {"a": [1, 2]}, rules)) == ["a[1]: not expected, got 2"]


def test_a_value_of_any_depth_ends_in_a_sentence() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    (said,) = words(compare_answers([deep], [2]))
    assert "nested too deeply" in said


def test_deep_json_in_a_text_is_compared_as_text() -> None:
    deep, deeper = ("[" * levels + "]" * levels for levels in (400, 401))
    (said,) = words(compare_answers(text(deep), text(deeper), DEFAULT))
    assert said.startswith('content[0].text: expected …"[[')


def test_many_differences_are_counted_and_not_all_kept() -> None:
    found = compare_answers(list(range(300)), list(range(1, 301)))
    assert (len(found.differences), found.more) == (100, 200)


def test_a_path_reads_as_one_types_it() -> None:
    assert path_words(("content", 0, "text", "a b", "c-d")) == 'content[0].text["a b"].c-d'


def test_normalizers_are_chosen_by_name() -> None:
    assert [each.name for each in named_normalizers(["port", "uuid"])] == ["uuid", "port"]
    assert named_normalizers(["none"]) == ()
    with pytest.raises(ValueError, match="'uid' is not a normalizer; there are uuid, iso-time,"):
        named_normalizers(["uid"])
    assert len(set(known_names())) == len(NORMALIZERS)
