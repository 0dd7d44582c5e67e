from __future__ import annotations

import json
import time

import pytest

from mcphost.auth.dpop import ProofKey
from mcphost.redaction import (
    MASK,
    command_secrets,
    is_secret_header,
    looks_secret,
    mask_credentials,
    mask_doubtful,
    redacted,
    safe_command,
    safe_url,
)

CANARY = "canary-0123456789"
HEADERS = ["authorization", "cookie", "dpop", "mcp-session-id", "proxy-authorization", "set-cookie"]
OAUTH = [
    "access_token",
    "actor_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code_verifier",
    "id_token",
    "refresh_token",
    "registration_access_token",
    "subject_token",
]


@pytest.mark.parametrize("name", [*HEADERS, "X-Api-Key", "X-Session", "X-Hub-Signature", "X-Password"])
def test_a_header_with_the_name_of_a_secret_is_masked(name: str) -> None:
    assert is_secret_header(name.title())


@pytest.mark.parametrize("name", ["Authorization", "AUTHORIZATION_HEADER", "SMTP_PASS", "pass", "auth", "signing_key"])
def test_a_setting_with_the_name_of_a_secret_is_one(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["author", "authority", "BYPASS", "KEY_ID", "keyboard", "authorization_server"])
def test_a_name_that_only_resembles_a_secrets_is_not_secret(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize("name", ["Content-Type", "WWW-Authenticate", "Sec-WebSocket-Key", "Retry-After", "Accept"])
def test_a_header_that_holds_no_secret_stays_readable(name: str) -> None:
    assert not is_secret_header(name)


@pytest.mark.parametrize("name", OAUTH)
def test_oauth_secrets_are_masked_in_json_in_urls_and_in_parameters(name: str) -> None:
    member = name.replace("_", "")
    assert mask_credentials(f'{{"{member}": "{CANARY}"}}') == f'{{"{member}": "{MASK}"}}'
    assert mask_credentials(f"at https://h/?a=1&{name}={CANARY}#x") == f"at https://h/?a=1&{name}={MASK}#x"
    assert safe_url(f"https://me@h/?a=1&{name}={CANARY}&b=2") == f"https://h/?a=1&{name}={MASK}&b=2"


def test_a_letter_that_counts_as_another_hides_no_credential() -> None:
    assert mask_credentials(f'{{"acce\u017f\u017f_to\u212aen": "{CANARY}"}}').endswith(f': "{MASK}"}}')


@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_masked_in_text(name: str) -> None:
    assert (
        mask_credentials(f"GET /\n{name.title()}: {CANARY}\nAccept: a") == f"GET /\n{name.title()}: {MASK}\nAccept: a"
    )


@pytest.mark.requirement("DPOP-06")
def test_the_private_part_of_a_key_is_masked() -> None:
    key = ProofKey.generate()
    text = json.dumps({**key.public, "d": key.d, "id": "d"})
    assert json.loads(mask_credentials(text)) == {**key.public, "d": MASK, "id": "d"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("audience is api://other, expected this server", None),
        ("AADSTS700016: the application is not known (OAuth2.0, HTTP/1.1)", None),
        ("invalid token: expired at 2026-07-28T10:00:00Z", None),
        ("the scope files:read of https://h.example.com/mcp2 is missing", None),
        ("client_secret expired last week, code: invalid_grant", None),
        ("tok-SECRET-1 is spent", f"{MASK} is spent"),
        ("Bearer abcdefgh ended", f"Bearer {MASK} ended"),
        ("DPoP abcdefgh ended", f"DPoP {MASK} ended"),
        ('{"Authorization": "Token abc"}', f'{{"Authorization": "{MASK}"}}'),
        ("access_token=abc&scope=read", f"access_token={MASK}&scope=read"),
        ("password = hunter, token: ab-cd", f"password = {MASK}, token: {MASK}"),
        ('{"refresh_token": "abc-def"}', f'{{"refresh_token": "{MASK}"}}'),
        ("at http://127.0.0.1:41247/callback/ab12cd34ef56", f"at http://127.0.0.1:41247/callback/{MASK}"),
        ("abcdefghijklmnopqrstuvwxyz", MASK),
    ],
)
def test_words_of_a_party_that_handles_tokens_lose_what_may_be_one(words: str, shown: str | None) -> None:
    assert mask_doubtful(words) == (shown or words)


@pytest.mark.parametrize("piece", ["a=", "ab1-", "0-", "token: ", "a.", 'a="', "http://", "-", "é"])
def test_words_are_masked_in_no_time_however_long_they_are(piece: str) -> None:
    began = time.thread_time()
    mask_doubtful(piece * (16_000 // len(piece)))
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize("words", [["--token", "abc123def"], ["--token=abc123def"], ["-e", "API_TOKEN=abc123def"]])
def test_secrets_in_the_words_of_a_command_are_found(words: list[str]) -> None:
    assert set(command_secrets(["server", *words, "--mode", "plain"])) == {"abc123def"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("npx git --token abc123def (in /work/abc)", f"npx git --token {MASK} (in /work/abc)"),
        ("""npx '--password=it'"'"'s a b' --mode plain""", f"npx '--password={MASK}' --mode plain"),
        ("npx -e 'API_TOKEN=abc123def 1", f"npx -e 'API_TOKEN={MASK} 1"),
        ("https://h.example/mcp?api_key=abc123def", f"https://h.example/mcp?api_key={MASK}"),
        ("npx git --keys 4 (in /work)", "npx git --keys 4 (in /work)"),
        ("npx db postgres://me:abc123def@h.example/db", "npx db postgres://h.example/db"),
    ],
)
def test_a_line_of_a_command_is_shown_without_its_secrets(line: str, shown: str) -> None:
    assert safe_command(line) == shown


@pytest.mark.parametrize("padding", [0, 7, 19, 31])
def test_a_large_message_is_masked_in_pieces_as_a_whole(padding: int) -> None:
    note = "a known-secret, Bearer abcdefgh1. Code"
    value = {"pad": "x" * padding, "items": [{"access_token": "abcdef123", "note": note}] * 6_000}
    hidden = redacted(json.dumps(value), lambda text: text.replace("known-secret", MASK))
    shown = {"access_token": MASK, "note": f"a {MASK}, Bearer {MASK} Code"}
    assert json.loads(hidden) == {**value, "items": [shown] * 6_000}
