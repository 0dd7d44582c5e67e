"""Token counts as models report them."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.providers.base import Price, TokenUsage
from tests.providers.endpoints import HELLO, VENDORS, each_vendor, event, gathered, read


@pytest.mark.hostile("M06")
@each_vendor
@pytest.mark.parametrize("count", [-1, 1e300, "7", True, None, 10**12, {}])
def test_a_count_that_is_none_is_unknown(vendor: str, count: Any) -> None:
    usage = {"input_tokens": count, "output_tokens": count, "prompt_tokens": count, "completion_tokens": count}
    told = {"type": "message_start", "message": {"usage": usage}, "usage": usage, "choices": []}
    told |= {"prompt_eval_count": count, "eval_count": count}
    events = read(vendor, VENDORS[vendor].frame(told), *VENDORS[vendor].stream(HELLO))
    assert next(each for each in events if isinstance(each, TokenUsage)) == TokenUsage()


@pytest.mark.hostile("M06")
@pytest.mark.parametrize(
    ("read_there", "put_there", "whole"),
    [(0, 0, 7), (3, 2, 12), (None, None, 7), (3, -1, None), (1e300, 2, None), ("3", 2, None), (True, 2, None)],
)
def test_cached_tokens_count_or_leave_the_size_unknown(read_there: Any, put_there: Any, whole: int | None) -> None:
    usage = {"input_tokens": 7, "cache_read_input_tokens": read_there, "cache_creation_input_tokens": put_there}
    told = event({"type": "message_start", "message": {"usage": usage}}) + event({"type": "message_stop"})
    assert gathered(read("anthropic", told)).usage == TokenUsage(whole, None)


@pytest.mark.hostile("M06")
@each_vendor
def test_uncounted_tokens_have_no_cost(vendor: str) -> None:
    told = b"".join(VENDORS[vendor].stream(HELLO))
    for name in (b"usage", b"prompt_eval_count", b"eval_count"):
        told = told.replace(b'"%s"' % name, b'"x"')
    usage = gathered(read(vendor, told)).usage
    assert (usage, Price(3, 15).cost_of(usage)) == (TokenUsage(), None)
