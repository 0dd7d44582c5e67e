"""The facts of a consent screen about a found server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcphost.imports.found import FoundServer, ImportNote, Input, Origin, legal_name
from mcphost.imports.preview import Preview, ValueOrigin, preview_of

SECRET = "ghp_0123456789abcdefABCDEF0123456789abcd"
ORIGIN = Origin("claude-code", "/home/ada/.claude.json", "github", "0" * 64, "project /home/ada/app")


def found(table: dict[str, Any], **more: Any) -> FoundServer:
    return FoundServer("github", ORIGIN, table, **more)


def preview(table: dict[str, Any], env: dict[str, str] | None = None, **more: Any) -> Preview:
    return preview_of(found(table, **more), env or {})


def values(shown: Preview) -> dict[str, tuple[ValueOrigin, str]]:
    return {each.name: (each.source, each.text) for each in shown.values}


@pytest.mark.requirement("SEC-12")
@pytest.mark.hostile("C04")
def test_a_command_is_shown_untruncated_and_its_danger_named() -> None:
    args = ["rm", "-rf", "/", *(f"word{number}" * 100 for number in range(1000)), "the end", "x" * 120_000]
    shown = preview({"command": "sudo", "args": args})
    assert shown.words == ("sudo", *args)
    assert shown.command_line.startswith("sudo rm -rf / word0word0")
    assert shown.command_line.endswith(f"'the end' {'x' * 120_000}")
    assert {sign.words for sign in shown.dangers} >= {"sudo", "rm -rf"}


@pytest.mark.hostile("C04")
def test_a_command_cannot_hide_its_end_or_command_the_terminal() -> None:
    shown = preview({"command": "npx", "args": [f"good{' ' * 5000}evil", "a\nb", "\x1b[2K", "\u202egnp.exe"]})
    assert shown.words[1:] == ("good␣×5000evil", "a⏎b", "␛[2K", "⟨U+202E⟩gnp.exe")


def test_words_are_quoted_where_they_would_be_read_as_others() -> None:
    assert preview({"command": "a b", "args": ["c;d", "", "e"]}).command_line == "'a b' 'c;d' '' e"


@pytest.mark.hostile("C10")
@pytest.mark.parametrize(
    "table",
    [
        {"command": "x", "env": {"GITHUB_TOKEN": SECRET}},
        {"command": "x", "env": {"CONFIG": f"a={SECRET}"}},
        {"command": "x", "args": [f"--token={SECRET}"]},
        {"command": "x", "args": ["--token", SECRET]},
        {"command": "x", "args": [SECRET]},
        {"command": "x", "args": [f"postgres://ada:{SECRET}@db/x"]},
        {"url": "https://x.example", "http_headers": {"Authorization": f"Bearer {SECRET}"}},
        {"url": "https://x.example", "http_headers": {"X-Api-Key": SECRET}},
        {"url": f"https://x.example/mcp?api_key={SECRET}"},
        {"url": "https://x.example", "oauth": {"client_id": "a", "client_secret": SECRET}},
    ],
)
def test_a_secret_is_named_and_never_shown(table: dict[str, Any]) -> None:
    shown = preview(table)
    assert SECRET not in repr(shown)
    assert shown.has_secrets


def test_each_value_says_where_it_comes_from() -> None:
    shown = preview(
        {
            "command": "x",
            "args": ["--dir", "${HOME}/notes"],
            "env": {
                "MODE": "stdio", "EMPTY": "", "A": "${SET}", "B": "${GONE}", "C": "${GONE:-fallback}",
                "D": "${keyring:github.D}", "E": "${file:key.pem}", "F": "${input:token}", "G": "pre-${SET}",
                "API_KEY": "${GONE:-dontshowme}",
            },
            "env_vars": ["SET", "GONE"],
        },
        {"SET": "1", "HOME": "/home/ada"},
        inputs=(Input("token", "Your token", secret=True),),
    )  # fmt: skip
    assert values(shown) == {
        "MODE": (ValueOrigin.LITERAL, "stdio"),
        "EMPTY": (ValueOrigin.LITERAL, "empty"),
        "A": (ValueOrigin.SET, "variable SET, set"),
        "B": (ValueOrigin.UNSET, "variable GONE, not set"),
        "C": (ValueOrigin.DEFAULT, "variable GONE, not set: fallback instead"),
        "D": (ValueOrigin.KEYCHAIN, "keychain entry github.D"),
        "E": (ValueOrigin.FILE, "file key.pem"),
        "F": (ValueOrigin.ASKED, "you are asked: Your token"),
        "G": (ValueOrigin.SET, "pre-${SET}: variable SET, set"),
        "API_KEY": (ValueOrigin.DEFAULT, "variable GONE, not set: ••• instead"),
        "SET": (ValueOrigin.SET, "variable SET, set"),
        "GONE": (ValueOrigin.DEFAULT, "variable GONE, not set"),
        "argument 2": (ValueOrigin.SET, "${HOME}/notes: variable HOME, set"),
    }
    assert [each.name for each in shown.unset] == ["B"]
    assert shown.asked == (("token", "Your token"),)


def test_the_headers_of_an_address_say_where_they_come_from() -> None:
    shown = preview(
        {"url": "https://${HOST}/mcp", "env_http_headers": {"X-Team": "TEAM"}, "bearer_token_env_var": "TOKEN"},
        {"TOKEN": "t"},
    )
    assert shown.url == "https://${HOST}/mcp"
    assert values(shown) == {
        "X-Team": (ValueOrigin.UNSET, "variable TEAM, not set"),
        "Authorization": (ValueOrigin.SET, "Bearer, then variable TOKEN, set"),
        "the address": (ValueOrigin.UNSET, "https://${HOST}/mcp: variable HOST, not set"),
    }


def test_what_was_left_out_and_every_other_setting_is_listed() -> None:
    shown = preview(
        {"command": "x", "cwd": "/home/ada", "enabled_tools": ["a*"], "tool_timeout_sec": 12.0, "enabled": False},
        notes=(ImportNote("autoApprove", "approvals of other programs are not taken over"),),
        disabled_there=True,
    )
    assert shown.folder == "/home/ada"
    assert shown.settings == (("enabled_tools", '["a*"]'), ("tool_timeout_sec", "12.0"), ("enabled", "false"))
    assert shown.notes[0] == ("autoApprove", "approvals of other programs are not taken over")
    assert shown.notes[1][0] == "enabled"


def test_the_origin_names_the_program_the_file_and_its_part() -> None:
    server = found({"command": "x"})
    shown = preview_of(server, {})
    assert shown.found_in == "Claude Code · /home/ada/.claude.json · project /home/ada/app"
    link = Origin("link", f"cursor://anysphere.cursor-deeplink/mcp/install?config={SECRET}", "x", "")
    assert preview_of(replace(server, origin=link), {}).found_in == (
        "link · cursor://anysphere.cursor-deeplink/mcp/install"
    )


@pytest.mark.hostile("C04")
def test_names_and_descriptions_from_elsewhere_are_shown_safely() -> None:
    origin = replace(ORIGIN, name="\x1b]0;x\x07", place="/tmp/\u202ex", scope="a\nb")
    shown = preview_of(
        FoundServer("x", origin, {"command": "x"}, description="\x1b[31mnice", refusal="\u200b",
                    inputs=(Input("a\x07", "b\x07"),), notes=(ImportNote("k\x07", "r\x07"),)),
        {},
    )  # fmt: skip
    text = repr(shown)
    assert not any(code in text for code in ("\\x1b", "\\x07", "\\u202e", "\\u200b", "\x1b"))
    assert "\\n" not in text


def test_an_entry_that_cannot_be_imported_says_why() -> None:
    shown = preview({}, refusal="a WebSocket server; mcphost speaks stdio and HTTP")
    assert shown.refusal == "a WebSocket server; mcphost speaks stdio and HTTP"
    assert shown.words == ()


@pytest.mark.requirement("SEC-12")
@pytest.mark.hostile("C04")
def test_an_input_hides_no_danger_of_the_options_behind_it() -> None:
    args = ["run", "--name", "x", "--privileged", "${input:flag}", "-v", "/:/host", "--network", "host", "ada/x:1"]
    shown = preview({"command": "docker", "args": args}, inputs=(Input("flag", ""),))
    assert [sign.words for sign in shown.dangers] == ["--privileged", "-v /:/host", "--network host"]
    assert [each.package for each in shown.downloads] == ["ada/x"]


@pytest.mark.requirement("SEC-12")
@pytest.mark.hostile("C04")
def test_a_default_that_is_a_danger_has_its_sign() -> None:
    table = {"command": "docker", "args": ["run", "-v", "${input:folder}:/host", "ada/x:1"]}
    assert preview(table, inputs=(Input("folder", "", default="/"),)).dangers
    assert not preview(table, inputs=(Input("folder", ""),)).dangers


@pytest.mark.hostile("C04")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("g\u0456thub", "It holds letters that only look like others: g\u0456thub (\u0456 is Cyrillic)"),
        ("git\u200bhub", "It holds characters that cannot be seen"),
        ("\x1b[31mred", "It holds characters that cannot be seen"),
        ("\u0437\u0430\u043f\u0438\u0441\u044c", ""),
        ("Gr\u00f6\u00dfe \u65e5\u672c", ""),
    ],
)
def test_a_name_there_that_looks_like_another_has_its_sign(name: str, said: str) -> None:
    found = FoundServer(legal_name(name), Origin("cursor", "/f", name, "0"), {"command": "x"})
    assert "; ".join(sign.text for sign in preview_of(found, {}).dangers)[: len(said)] == said
    assert bool(said) == bool(preview_of(found, {}).dangers)
