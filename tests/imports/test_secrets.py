"""Which texts of an entry are secrets, and what takes their places."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.imports.secrets import find_secrets, lines_of, masked, with_references

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl"
GITHUB = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc=\n-----END RSA PRIVATE KEY-----"

SECRETS: list[tuple[dict[str, Any], str, str, str]] = [
    # the entry, the key, the item's name, the secret
    ({"env": {"API_KEY": "abc"}}, "env.API_KEY", "API_KEY", "abc"),
    ({"env": {"DB_PASSWORD": "12345"}}, "env.DB_PASSWORD", "DB_PASSWORD", "12345"),
    ({"env": {"SECRET": "/etc2x9k/Zq81mv"}}, "env.SECRET", "SECRET", "/etc2x9k/Zq81mv"),
    ({"env": {"A_TOKEN": "a$${b"}}, "env.A_TOKEN", "A_TOKEN", "a${b"),
    ({"env": {"X": GITHUB}}, "env.X", "X", GITHUB),
    ({"env": {"X": "github_pat_11ABCDEFG0abcdefgh_mno"}}, "env.X", "X", "github_pat_11ABCDEFG0abcdefgh_mno"),
    ({"env": {"X": "sk-ant-api03-abcdefghij_klmnop"}}, "env.X", "X", "sk-ant-api03-abcdefghij_klmnop"),
    ({"env": {"X": "sk-proj-abcdefghijklmnop"}}, "env.X", "X", "sk-proj-abcdefghijklmnop"),
    ({"env": {"X": "xoxb-123456789012-abc"}}, "env.X", "X", "xoxb-123456789012-abc"),
    ({"env": {"X": "AKIAIOSFODNN7EXAMPLE"}}, "env.X", "X", "AKIAIOSFODNN7EXAMPLE"),
    ({"env": {"X": "AIzaSyA1234567890abcdefghijklmnopqrs"}}, "env.X", "X", "AIzaSyA1234567890abcdefghijklmnopqrs"),
    ({"env": {"X": JWT}}, "env.X", "X", JWT),
    ({"env": {"X": PEM}}, "env.X", "X", PEM),
    ({"env": {"X": AWS}}, "env.X", "X", AWS),
    ({"env": {"X": "postgres://ada:pw@db/x"}}, "env.X", "X", "pw"),
    ({"env": {"DATABASE_DSN": "postgres://ada:pw@db/x"}}, "env.DATABASE_DSN", "DATABASE_DSN", "pw"),
    ({"env": {"X": "https://h/x?api_key=abc&n=1"}}, "env.X", "X", "abc"),
    ({"env": {"X": '{"Authorization": "Bearer ntn_123", "Version": "2"}'}}, "env.X", "X", "ntn_123"),
    ({"env": {"X": "https://hooks.example/T0/B0/a8Kd92mzPqLx04TbWe7YcRv1"}}, "env.X", "X", "a8Kd92mzPqLx04TbWe7YcRv1"),
    ({"http_headers": {"Authorization": "Bearer abc"}}, "http_headers.Authorization", "Authorization", "abc"),
    ({"http_headers": {"authorization": "abc"}}, "http_headers.authorization", "authorization", "abc"),
    ({"http_headers": {"X-Api-Key": "abc"}}, "http_headers.X-Api-Key", "X-Api-Key", "abc"),
    ({"http_headers": {"Cookie": "a=b; c=d"}}, "http_headers.Cookie", "Cookie", "a=b; c=d"),
    ({"http_headers": {"X-Team": GITHUB}}, "http_headers.X-Team", "X-Team", GITHUB),
    ({"args": ["--api-key=abc"]}, "args[0]", "api-key", "abc"),
    ({"args": ["--token", "abc"]}, "args[1]", "token", "abc"),
    ({"args": ["-e", "GH_TOKEN=abc"]}, "args[1]", "GH_TOKEN", "abc"),
    ({"args": ["--header", "Authorization: Bearer abc"]}, "args[1]", "Authorization", "abc"),
    ({"args": ["--header", "X-Api-Key:abc"]}, "args[1]", "X-Api-Key", "abc"),
    ({"args": ["--config", '{"apiKey":"abc"}']}, "args[1]", "apiKey", "abc"),
    ({"args": ["x", "postgresql://ada:pw@h/db"]}, "args[1]", "password", "pw"),
    ({"args": ["x", "y", GITHUB]}, "args[2]", "arg3", GITHUB),
    ({"args": ["https://ghp_16C7e42F292c@github.com/x/y"]}, "args[0]", "user", "ghp_16C7e42F292c"),
    ({"url": "https://h/mcp?token=abc"}, "url", "token", "abc"),
    ({"url": f"https://h/mcp/{GITHUB}"}, "url", "url", GITHUB),
    ({"url": "https://h", "oauth": {"client_secret": "abc"}}, "oauth.client_secret", "client_secret", "abc"),
    ({"url": "https://h", "oauth": {"private_key": PEM}}, "oauth.private_key", "private_key", PEM),
]  # fmt: skip

PLAIN: list[dict[str, Any]] = [
    {"env": {"MAX_TOKENS": "4096", "AUTH_MODE": "oauth", "TOKEN": "", "USE_TOKEN": "true", "A_KEY": "<your key>"}},
    {"env": {"API_KEY": "${API_KEY}", "TOKEN": "${keyring:x}", "KEY": "YOUR_API_KEY", "A_TOKEN": "${input:token}"}},
    {"env": {"SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh", "AUTH_URL": "https://login.example.com/oauth"}},
    {"env": {"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/.config/gcloud/key.json", "KEY_FILE": "~/keys/id.pem"}},
    {"env": {"LANG": "en_US.UTF-8", "MODE": "read-only", "ID": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}},
    {"env": {"PATH": "/nix/store/8x7vhkz6d0rka3n2zl6r8n1d4v5h9m2c-node/bin:/usr/bin", "REGION": "eu-central-1"}},
    {"args": ["-y", "@modelcontextprotocol/server-github@2025.4.8", "--port", "8080", "--token", "--verbose"]},
    {"args": ["run", "--rm", "-i", "-e", "GITHUB_TOKEN", "ghcr.io/x/server@sha256:" + "0a1b2c3d" * 8]},
    {"args": ["--from", "git+https://github.com/x/y@" + "0a1b2c3d4e" * 4, "mcp-server-everything-2025-11-25"]},
    {"args": ["--directory", "/home/ada/src/project2", "--header", "Authorization:${AUTH}", "--auth", "none"]},
    {"url": "https://mcp.example.com/v1/sse?region=eu&project=3f2504e0-4f89-11d3-9a0c-0305e82c3301"},
    {"http_headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "tools", "User-Agent": "mcphost/1.0"}},
    {
        "command": "/tmp/a folder with Ünïcode and a wrap/mcphost-l8qgxzgx7k/python",
        "args": ["~/My Files/x8Kd93mQz72LpV0aBc/y"],
    },
    {"env": {"A": 1}, "args": "x", "http_headers": [], "oauth": "x", "url": None, "command": ["x"]},
]


@pytest.mark.parametrize(("table", "key", "item", "value"), SECRETS)
def test_a_secret_is_found_by_its_name_or_its_shape(table: dict[str, Any], key: str, item: str, value: str) -> None:
    (secret,) = find_secrets(table)
    assert (secret.key, secret.item, secret.value) == (key, item, value)
    assert value not in repr(secret)
    assert secret.in_arguments == key.startswith("args")
    assert value not in str(masked(table)) or value == "${"


@pytest.mark.parametrize("table", PLAIN)
def test_what_is_no_secret_stays_as_it_is(table: dict[str, Any]) -> None:
    assert [(secret.key, secret.reason) for secret in find_secrets(table)] == []
    assert masked(table) == table


def test_several_secrets_of_an_entry_have_names_of_their_own() -> None:
    table = {"env": {"T_TOKEN": "abc"}, "args": ["--t-token", "x1", "--t-token=y1", "https://a:b@h/?key=k1"]}
    assert [secret.item for secret in find_secrets(table)] == ["T_TOKEN", "t-token", "t-token-2", "password", "key"]


def test_references_take_the_places_of_secrets_alone() -> None:
    table: dict[str, Any] = {
        "args": ["postgres://ada:pw@h/x?key=k1", "-v"],
        "http_headers": {"Authorization": "Bearer abc"},
    }
    made = with_references(table, find_secrets(table), lambda secret: f"<{secret.item}>")
    assert made == {
        "args": ["postgres://ada:<password>@h/x?key=<key>", "-v"],
        "http_headers": {"Authorization": "Bearer <Authorization>"},
    }
    assert table["args"][0] == "postgres://ada:pw@h/x?key=k1"


@given(st.text(), st.text(max_size=20))
def test_any_text_is_read_and_its_places_are_its_own(text: str, name: str) -> None:
    table = {"env": {name: text}, "args": ["--token", text], "url": text, "http_headers": {name: text}}
    made = with_references(table, find_secrets(table), lambda secret: secret.value.replace("${", "$${"))
    assert made == table


@pytest.mark.parametrize(
    "text",
    [
        *("://" * 50_000, "/a1" * 50_000, "?a" * 50_000, "a=" * 50_000, "A" * 200_000, "sk-" * 50_000),
        *("a-" * 90_000 + "!", "?token=a" * 50_000, '"token":"a",' * 50_000, "Bearer abcdefgh " * 30_000),
        *("ghp_abcdefghijklmnopqrstuvwx " * 20_000, "://a:b@" * 50_000, "${A}b1" * 50_000, "/ " * 90_000 + "="),
    ],
    ids=lambda text: text[:12],
)
def test_long_texts_take_no_time(text: str) -> None:
    began = time.process_time()
    find_secrets({"env": {"TOKEN_X": text, "X": text}, "args": [text], "url": text})
    assert time.process_time() - began < 5


def test_very_many_secrets_take_no_time() -> None:
    began = time.process_time()
    assert len(find_secrets({"args": [f"--token=a{number}" for number in range(20_000)]})) == 20_000
    assert time.process_time() - began < 5


def test_a_text_with_too_many_secrets_is_one_as_a_whole() -> None:
    text = "&".join(["https://h/?", *(f"token=s3cret{number}" for number in range(30))])
    (secret,) = find_secrets({"url": text})
    assert secret.value == text


def test_the_lines_of_a_secret_are_named(tmp_path: Path) -> None:
    path = tmp_path / "there.json"
    path.write_text(
        '{\n "a": "say \\"canary\\" twice",\n "b": "s3cret-x",\n "c": "s3cret-x",\n "k": "ab\\ncdefghij"\n}'
    )
    assert lines_of(path, "s3cret-x") == (3, 4)
    assert lines_of(path, 'say "canary" twice') == (2,)
    assert lines_of(path, "ab\ncdefghij") == (5,)
    assert lines_of(path, "ab") == ()  # too short to be anything but chance
    assert lines_of(tmp_path / "absent", "s3cret-x") == ()
