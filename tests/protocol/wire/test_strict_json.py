from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.wire.strict_json import Refused, parse, parse_in_steps

DEPTH = 12
BIG = 16_000_000
HOSTILE_BYTES = 4_000_000


def steps_of(data: bytes, *, max_items: int = 50_000, max_depth: int = DEPTH) -> tuple[Any, int]:
    """The value, and the number of steps."""
    steps, count = parse_in_steps(data, max_items, max_depth), 0
    while True:
        count += 1
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count


def outcome(parsed: Any) -> Any:
    """The result as text, to compare types too: in Python 1 equals True and 1.0."""
    try:
        return json.dumps(parsed())
    except Refused as refused:
        return (refused.is_json, str(refused).split(":")[0])


texts = st.text(st.sampled_from('ab"\\{}[],: \n\ud800\U0001f600é\x00'), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6), max_leaves=40
)
layouts = st.sampled_from([None, 0, 3])


@pytest.mark.parametrize("text", [r'"\ud800"', r'["\ud800"]', r'{"\ud800":"\ud800"}'])
def test_a_lone_surrogate_is_replaced_everywhere(text: str) -> None:
    whole = json.loads(text.replace(r"\ud800", "\ufffd"))
    assert parse(text.encode(), DEPTH) == steps_of(text.encode())[0] == whole


@pytest.mark.parametrize(
    "text", [r'{"\ud800":1,"\udfff":2}', r'{"\ud800":[],"\udfff":[]}', '{"\\ud800":1,"\ufffd":2,"a":3}']
)
def test_keys_that_become_equal_by_replacement_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="a key is twice"):
        parse(text.encode(), DEPTH)
    with pytest.raises(Refused, match="a key is twice"):
        steps_of(text.encode())


@given(values, layouts, st.booleans(), st.sampled_from([1, 2, 250]))
def test_steps_bring_the_same_value_as_parsing_at_once(value: Any, indent: int | None, ascii: bool, run: int) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii).encode("utf-8", "replace")
    assert outcome(lambda: steps_of(data)[0]) == outcome(lambda: parse(data, DEPTH))


@given(values, st.integers(min_value=0), st.sampled_from(['"', "\\", ",", ":", "{", "}", "[", "]", "1", "-", "", "  "]))
def test_steps_refuse_what_parsing_at_once_refuses(value: Any, place: int, broken: str) -> None:
    text = json.dumps(value)
    at = place % (len(text) + 1)
    data = (text[:at] + broken + text[at + 1 :]).encode()
    assert outcome(lambda: steps_of(data)[0]) == outcome(lambda: parse(data, DEPTH))


@pytest.mark.parametrize(
    "text",
    [
        '[1,"a",{"a":1,"a":2}]',
        '{"a":1,"b":[],"a":2}',
        '{"a":[],"a":[]}',
        "[1,NaN,2]",
        "[Infinity,[]]",
        '{"a":1e999,"b":2}',
        "[1,2,[1e999]]",
        f"[{'1' * 5000},1]",
        "[1,]",
        '{"a":1,}',
        "[,1]",
        "[1 2]",
        '{"a" 1}',
        '{1:2,"a":3}',
        "[1]]",
        "[1",
        '{"a":',
        '["a\n",1]',
        "[01,1]",
        "[[1},2]",
        "[\u00a01,2]",
        "[１,2]",
        "",
        "7",
        "[" * 13 + "1" + "]" * 13,
        "[" * 12 + "[1]," + "1" + "]" * 12,
        "[" * 12 + '{"a":1}' + "]" * 12,
    ],
)
def test_both_parsers_refuse_for_the_same_reason(text: str) -> None:
    data = text.encode()
    refused = outcome(lambda: steps_of(data)[0])
    assert refused == outcome(lambda: parse(data, DEPTH))
    assert isinstance(refused, tuple) or text == "7"


def test_a_mistake_is_found_at_its_place() -> None:
    text = '{"a":[' + "1," * 3000 + "\n x],2"
    with pytest.raises(Refused) as refused:
        steps_of(text.encode())
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    assert str(refused.value) == f"not JSON: {expected.value}"


def test_lone_surrogates_are_replaced_at_every_level() -> None:
    value, _ = steps_of(rb'{"a\ud800":["\udfff",{"\ud83d\ude00":"x"},[["\uDC00"]]]}')
    assert value == {"a\ufffd": ["\ufffd", {"\U0001f600": "x"}, [["\ufffd"]]]}


def numbers(count: int) -> bytes:
    return b'{"result":[' + b",".join(b"%d" % n for n in range(count)) + b"]}"


def filled(item: bytes) -> bytes:
    return b'{"result":[' + b",".join([item] * (HOSTILE_BYTES // (len(item) + 1))) + b"]}"


# A step takes at most 250 values, some of which are short lists: of those parsing takes a few milliseconds.
HOSTILE = {
    "digits": lambda: filled(b"1"),
    "floats": lambda: filled(b"1.5"),
    "strings": lambda: filled(b'""'),
    "long floats": lambda: filled(b"1.2345678901234567e-300"),
    "keys": lambda: b"{" + b",".join(b'"%x":0' % n for n in range(450_000)) + b"}",
    "half characters": lambda: b"{" + b",".join(b'"%x\\ud800":0' % n for n in range(250_000)) + b"}",
    "short lists": lambda: filled(b"[" + b",".join([b"0"] * 150) + b"]"),
    "lists": lambda: filled(b"[" + b",".join([b'"aaaa"'] * 45) + b"]"),
    "deep lists": lambda: filled(b"[" * 9 + b"1," * 2000 + b"1" + b"]" * 9),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_each_step_takes_few_of_a_hostile_text_s_values(kind: str) -> None:
    data = HOSTILE[kind]()
    value, steps = steps_of(data, max_items=60_000)
    assert value
    assert data.count(b",") / steps < 20_000


@pytest.mark.parametrize("text", [filled(b" " * 1000 + b"1" + b" " * 1000), b'["' + b"\\n" * (BIG // 2 - 4) + b'"]'])
def test_much_white_space_and_one_long_text_are_read(text: bytes) -> None:
    value, _ = steps_of(text)
    assert value


@pytest.mark.parametrize("count", [10, 1_000_000])
def test_an_honest_array_of_numbers_passes(count: int) -> None:
    value, _ = steps_of(numbers(count))
    assert value == {"result": list(range(count))}
