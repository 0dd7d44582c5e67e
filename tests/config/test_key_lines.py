"""The lines of keys, against texts of every shape that TOML has."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcphost.config import Values, load, resolve_server
from mcphost.config.key_lines import KeyLines
from mcphost.config.loading import placed
from mcphost.errors import UnresolvedReference

TEXT = '''\
# [comment.table]
top = """
[not.a.table]
quote = "" """  # x = 1
lit = \'\'\'
it's = 'x'
\'\'\'
[a.b.c]
[a . "b"]   # after its subtable
"key.with.dots" = 1
inline = { x = 1, y = { z = [ "}", ']' ] } }
dotted.'two' = [
  1, # one ]
  { three = 3 },

  [ 4,
    5 ],
]
when = 1979-05-27T07:32:00.999-07:00
last = 6.5
[[many]]
x = 1
[[many]]
[many.sub]
y = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("lit",), 5),
        (("a",), 8),
        (("a", "b", "c"), 8),
        (("a", "b"), 9),
        (("a", "b", "key.with.dots"), 10),
        (("a", "b", "inline", "y", "z", 1), 11),
        (("a", "b", "dotted"), 12),
        (("a", "b", "dotted", "two", 0), 13),
        (("a", "b", "dotted", "two", 1, "three"), 14),
        (("a", "b", "dotted", "two", 2, 1), 17),
        (("a", "b", "when"), 19),
        (("a", "b", "last"), 20),
        (("many", 0, "x"), 22),
        (("many", 1), 23),
        (("many", 1, "sub", "y"), 25),
        (("a", "b", "absent", "deeper"), 9),
        (("absent",), None),
        ((), None),
    ],
)
def test_a_path_is_found_on_its_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert KeyLines(TEXT).line_of(path) == line


@example('"\\="')
@given(st.text(alphabet="a.\"'[]{}=,\n# \\", max_size=60))
def test_no_text_hangs_the_search(text: str) -> None:
    with suppress(tomllib.TOMLDecodeError):  # a key whose escapes are none: such a text never gets here
        assert KeyLines(text).line_of(("b",)) is None or "b" in text


def test_an_unset_value_is_reported_with_its_line(tmp_path: Path) -> None:
    text = '[servers.a]\nurl = "https://h"\n[servers.a.oauth]\nclient_id = "x"\nscopes = [\n  "r",\n  "${UNSET}",\n]\n'
    (tmp_path / "config.toml").write_text(text)
    config = load(tmp_path / "config.toml").config
    with pytest.raises(UnresolvedReference) as caught:
        resolve_server(config, Values({}), "a")
    assert placed(caught.value, config, "a").line == 7
