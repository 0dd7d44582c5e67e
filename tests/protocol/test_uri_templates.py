from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.errors import InvalidResult
from mcphost.protocol.uri_templates import UriTemplate, Variable


@pytest.mark.requirement("RES-07")
@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        ("file:///plain", {}, "file:///plain"),
        ("file:///{path}", {"path": "a b/c"}, "file:///a%20b%2Fc"),
        ("file:///{+path}", {"path": "a b/c"}, "file:///a%20b/c"),
        ("x:{?q}", {"q": "fish & chips"}, "x:?q=fish%20%26%20chips"),
        ("x:{?q,r}", {"r": "1"}, "x:?r=1"),
        ("x:{?q}", {"q": ""}, "x:?q="),
        ("x:{?q,r}{#f}", {}, "x:"),
        ("x:{/seg*}{.ext}", {"seg": ["a", "b"], "ext": "txt"}, "x:/a/b.txt"),
        ("x:{name:3}", {"name": "abcdef"}, "x:abc"),
        ("x:{a}", {"a": "ü🚀", "other": "secret"}, "x:%C3%BC%F0%9F%9A%80"),
        ("x:{a.b}{c%20d}{_e}", {"a.b": "1", "c%20d": "2", "_e": "3"}, "x:123"),
    ],
)
def test_a_template_becomes_a_uri_as_the_rfc_has_it(template: str, values: dict[str, Any], uri: str) -> None:
    assert UriTemplate.read(template).expand(values) == uri


def test_variables_come_in_order_and_once() -> None:
    template = UriTemplate.read("db://{table}/{id:8}/{table}{?limit,tags*}{#part}")
    assert template.variables == (
        Variable("table"),
        Variable("id", longest=8),
        Variable("limit", optional=True),
        Variable("tags", optional=True, many=True),
        Variable("part", optional=True),
    )
    assert template.missing({"id": "7", "table": ""}) == ("table",)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("a{", "brace"),
        ("a}b", "brace"),
        ("a{b", "brace"),
        ("{{a}}", "brace"),
        ("{}", "no valid variable name in {}"),
        ("{a,}", "no valid variable name"),
        ("{a b}", "no valid variable name"),
        ("{a:0}", "no valid variable name"),
        ("{a:12345}", "no valid variable name"),
        ("{ü}", "no valid variable name"),
        ("{=a}", "'=' in {=a}, which means nothing yet"),
        ("a b{c}", "' ', which no URI may hold"),
        ("a\x1b[2J{c}", "'\\x1b'"),
        ("a%zz{c}", "'%'"),
        ("x" * 5000, "5000 characters"),
        ("".join(f"{{v{n}}}" for n in range(65)), "65 variables"),
    ],
)
def test_an_invalid_template_is_refused(template: str, words: str) -> None:
    with pytest.raises(InvalidResult) as refused:
        UriTemplate.read(template)
    assert words in str(refused.value)
    assert str(refused.value).startswith("the URI template ")


@given(st.text(alphabet="{}a,+?&:*.%2/ =", max_size=40))
def test_any_template_is_refused_or_can_be_filled_in(text: str) -> None:
    try:
        template = UriTemplate.read(text)
    except InvalidResult:
        return
    filled = template.expand({variable.name: "v" for variable in template.variables})
    assert "{" not in filled
    assert "}" not in filled
