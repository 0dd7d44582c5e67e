"""Differences between two configurations, and those that ask again."""

from __future__ import annotations

import pytest

from mcphost.config import Changes, compare, parse

OLD = '[servers.a]\ncommand = "x"\n[servers.b]\nurl = "https://b"\n[limits]\nlist_pages = 64\n'
OF_IDENTITY = (
    '[servers.b]\nurl = "https://b"\noauth = { grant = "enterprise", identity = "i", client_id = "x" }\n'
    '[identity.i]\nissuer = "https://idp"\nclient_id = "y"\n'
)


@pytest.mark.hostile("C02")
@pytest.mark.parametrize(
    ("new", "changes"),
    [
        (OLD, Changes()),
        (OLD.replace("list_pages = 64", ""), Changes()),
        (OLD + '[servers.c]\ncommand = "x"', Changes(added=("c",))),
        (OLD.replace("servers.b", "servers.B"), Changes(added=("B",), removed=("b",))),
        (OLD.replace('"x"', '"y"'), Changes(changed={"a": ("command",)}, needs_consent=frozenset("a"))),
        (OLD.replace('"x"', '"x"\nargs = ["1"]'), Changes(changed={"a": ("args",)}, needs_consent=frozenset("a"))),
        (OLD.replace("//b", "//c"), Changes(changed={"b": ("url",)}, needs_consent=frozenset("b"))),
        (
            OLD.replace('//b"', '//b"\noauth.client_id = "x"'),
            Changes(changed={"b": ("oauth",)}, needs_consent=frozenset("b")),
        ),
        (
            OF_IDENTITY.replace("idp", "other"),
            Changes(changed={"b": ("oauth",)}, needs_consent=frozenset("b"), sections=("identity",)),
        ),
        (OLD.replace('b"', 'b"\nenabled = false\nstart = "lazy"'), Changes(changed={"b": ("start", "enabled")})),
        (OLD.replace('"x"', '"x"\nlimits.log_lines = 9'), Changes(changed={"a": ("limits",)})),
        (OLD.replace("64", "9"), Changes(changed={"a": ("limits",), "b": ("limits",)}, sections=("limits",))),
        (OLD + '[policy]\ndefault = "deny"\n[ui]\nmouse = false', Changes(sections=("policy", "ui"))),
    ],
)
def test_changes_name_the_fields_and_what_asks_again(new: str, changes: Changes) -> None:
    """A change of the program, the address or a secret always asks."""
    found = compare(parse(OF_IDENTITY if "identity" in new else OLD).config, parse(new).config)
    assert found == changes
    assert bool(found) is (changes != Changes())
