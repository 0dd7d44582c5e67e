"""What servers and authorization servers may say to lead a sign-in astray, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from mcphost.auth import masking
from mcphost.auth.addresses import checked_url
from mcphost.auth.base import Choice, ClientOrigin, OAuthSettings
from mcphost.auth.callback import authorization_url
from mcphost.auth.challenge import read_challenge
from mcphost.auth.credentials import Credentials
from mcphost.auth.oauth import refresh
from mcphost.auth.registration import hosted_document
from mcphost.auth.resource import is_for
from mcphost.auth.wire import Fetch, Fetched
from mcphost.errors import SignInFailed
from tests.auth.flows import ISSUER, NOW, SERVER, TOKEN, World, document, issuer_document, resource_document

PRM = "https://mcp.example.com/.well-known/oauth-protected-resource/v1/mcp"
ASM = f"{ISSUER}/.well-known/oauth-authorization-server"


# Addresses.

REFUSED = {
    "a file": ("file:///etc/passwd", "neither https nor http"),
    "a script": ("javascript:alert(1)//https://as.example.com", "control characters|neither https nor http"),
    "data": ("data:text/html,<script>", "neither https nor http"),
    "a handler of Windows": ("ms-msdt:/id", "neither https nor http"),
    "an editor": ("vscode://file/x", "neither https nor http"),
    "an upper-case scheme": ("FILE:///etc/passwd", "neither https nor http"),
    "no scheme": ("as.example.com/authorize", "neither https nor http"),
    "an option": ("--new-window", "neither https nor http"),
    "no host": ("https:///authorize", "names no host"),
    "http": ("http://as.example.com/", "is http, not https"),
    "http to a look-alike of this machine": ("http://localhost.evil.example/", "is http, not https"),
    "http to a private address": ("http://192.168.0.1/", "private network"),
    "a user": ("https://accounts.google.com@evil.example/", "carries a name before its host"),
    "a user and a password": ("https://a:b@evil.example/", "carries a name before its host"),
    "a fragment": ("https://as.example.com/#x", "has a fragment"),
    "a space": ("https://as.example.com/a b", "spaces"),
    "a newline": ("https://as.example.com/\nX: y", "spaces, backslashes or control"),
    "an escape": ("https://as.example.com/\x1b[2J", "spaces, backslashes or control"),
    "C1": ("https://as.example.com/\x9b2J", "spaces, backslashes or control"),
    "a backslash": ("https:\\\\as.example.com", "spaces, backslashes or control"),
    "a long story": ("https://as.example.com/" + "x" * 10_000, "longer than 8192"),
    "a command as host": ("https://a$(id).example.com/", "names no host that can be"),
    "a pipe as host": ("https://a|id/", "names no host that can be"),
    "a quote as host": ("https://a'b/", "names no host that can be"),
    "an escaped host": ("https://a%2fb/", "names no host that can be"),
    "a host like an option": ("https://-oProxyCommand/", "names no host that can be"),
    "a port that is none": ("https://as.example.com:99999/", "names no host that can be"),
    "a zone": ("https://[fe80::1%25eth0]/", "names no host that can be"),
    "full-width digits": ("https://１２７.0.0.1/", "is no URL"),
    "half a surrogate": ("https://as.example.com/\ud800", "is no URL"),
    "metadata of a cloud": ("https://169.254.169.254/latest/meta-data", "private network"),
    "loopback": ("https://127.0.0.1/", "private network"),
    "loopback by name": ("http://localhost:8080/", "private network"),
    "loopback by a name below": ("http://x.localhost./", "private network"),
    "loopback in six": ("https://[::1]/", "private network"),
    "mapped": ("https://[::ffff:127.0.0.1]/", "private network"),
    "mapped in hex": ("https://[::ffff:a9fe:a9fe]/", "private network"),
    "translated": ("https://[64:ff9b::a9fe:a9fe]/", "private network"),
    "6to4": ("https://[2002:7f00:1::]/", "private network"),
    "Teredo": ("https://[2001:0:1:2:3:4:5:6]/", "private network"),
    "private": ("https://10.0.0.1/", "private network"),
    "unique local": ("https://[fd00::1]/", "private network"),
    "shared": ("https://100.64.0.1/", "private network"),
    "nowhere": ("https://0.0.0.0/", "private network"),
    "hexadecimal": ("https://0x7f000001/", "hides it"),
    "hexadecimal parts": ("https://0x7f.0.0.1/", "hides it"),
    "octal": ("https://0177.0.0.1/", "is no URL"),
    "decimal": ("https://2130706433/", "hides it"),
    "short": ("https://127.1/", "hides it"),
    "a dot at the end": ("https://127.0.0.1./", "hides it"),
}


@pytest.mark.requirement("SEC-10", "SEC-11", "AUTH-19")
@pytest.mark.parametrize("at", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "issuer", "place"])
@pytest.mark.parametrize(("url", "says"), REFUSED.values(), ids=REFUSED)
def test_an_address_that_must_not_be_used_ends_the_sign_in_before_it_is(url: str, says: str, at: str) -> None:
    """O01, O02, O03, O05, O06."""
    world = World.usual()
    challenge = "Bearer"
    if at == "issuer":
        world.places[PRM] = resource_document(authorization_servers=[url])
    elif at == "place":
        quoted = url.replace("\\", "\\\\")
        challenge = f'Bearer resource_metadata="{quoted}"'
    else:
        world.places[ASM] = issuer_document(**{at: url})
    with pytest.raises(SignInFailed, match=says) as told:
        world.sign_in(challenge=challenge)
    assert world.urls() == [PRM, ASM][: {"place": 0, "issuer": 1}.get(at, 2)]
    assert not world.visits
    assert len(str(told.value)) < 400
    assert not {"\x1b", "\n", "\x9b", "\ud800"} & {*str(told.value)}


@pytest.mark.parametrize(
    ("url", "home"),
    [
        ("https://as.example.com:8443/a?b=c", SERVER),
        ("https://8.8.8.8/", SERVER),
        ("https://[2606:4700::1111]/", SERVER),
        ("http://127.0.0.1:9000/x", "http://127.0.0.1:3000/mcp"),
        ("http://localhost:9000/x", "http://127.0.0.1:3000/mcp"),
        ("https://10.1.2.3/x", "https://10.0.0.1/mcp"),
        ("https://10.1.2.3/x", "http://localhost:3000/mcp"),
        ("https://b\u00fccher.example/x", SERVER),
    ],
)
def test_an_address_where_the_server_lives_or_that_is_public_may_be_used(url: str, home: str) -> None:
    """O06."""
    assert checked_url("place", url, home) == url


@pytest.mark.requirement("AUTH25-08", "AUTH-19")
def test_a_server_that_is_reached_without_tls_is_not_signed_in_to_and_nothing_is_asked_of_it() -> None:
    """O05."""
    world = World.usual()
    with pytest.raises(SignInFailed, match="is http, not https"):
        world.sign_in("http://mcp.example.com/v1/mcp")
    assert not world.asked


@pytest.mark.requirement("SEC-10")
def test_metadata_about_the_server_is_taken_from_its_own_origin_alone() -> None:
    """O06, O07: a place on another host is not fetched, and an unreadable challenge is none."""
    world = World.usual()
    with pytest.raises(SignInFailed, match=r"another host, evil\.example\.com"):
        world.sign_in(challenge='Bearer resource_metadata="https://evil.example.com/x"')
    assert not world.asked
    assert world.sign_in(challenge="Bearer " + "x" * 100_000).issuer == ISSUER


OURS = {"client_id": "c", "state": "s", "response_type": "code"}


@pytest.mark.requirement("SEC-11")
@pytest.mark.parametrize(
    ("endpoint", "begins"),
    [
        ("https://as.example.com/a", "https://as.example.com/a?client_id=c&"),
        ("HTTPS://AS.example.com:443", "https://as.example.com/?client_id=c&"),
        ("https://as.example.com/a?tenant=1", "https://as.example.com/a?tenant=1&client_id=c&"),
        ("https://as.example.com/a?", "https://as.example.com/a?client_id=c&"),
        (
            "https://as.example.com/a?client_id=evil&state=known&redirect_uri=https://evil&response_type=token&x=y",
            "https://as.example.com/a?x=y&client_id=c&state=s&response_type=code",
        ),
        ("https://as.example.com/a?request_uri=https://evil&request=x", "https://as.example.com/a?client_id=c&"),
        (
            'https://as.example.com/`id`|"a"^<b>{c}[d]%action%zz?x=`id`|"\'&y=%zz',
            "https://as.example.com/%60id%60%7C%22a%22%5E%3Cb%3E%7Bc%7D%5Bd%5D%action%25zz?x=%60id%60%7C%22%27&y=%25zz&",
        ),
        ("https://b\u00fccher.example/\u00e9\u202e", "https://xn--bcher-kva.example/%C3%A9%E2%80%AE?client_id=c&"),
    ],
)
def test_the_address_for_the_browser_is_written_anew_and_our_parameters_win(endpoint: str, begins: str) -> None:
    """O02, O03, O04."""
    assert authorization_url(endpoint, OURS).startswith(begins)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_address_for_the_browser_holds_only_what_an_address_may(path: str, query: str) -> None:
    """O02."""
    try:
        endpoint = checked_url("place", f"https://as.example.com/{path}?{query}", SERVER)
        full = authorization_url(endpoint, OURS)
    except SignInFailed:
        return
    assert full.startswith("https://as.example.com/")
    assert full.isascii()
    assert not {*full} & {*" \"'`<>{}|\\^[]#\n\r\t"} - {"'"}
    assert full.count("client_id=c&state=s") == 1


@pytest.mark.parametrize("query", ["a=1&a=2", "state=1&state=2"])
def test_an_endpoint_that_names_a_parameter_twice_is_refused(query: str) -> None:
    """O04."""
    with pytest.raises(SignInFailed, match="twice"):
        authorization_url(f"https://as.example.com/a?{query}", OURS)


@pytest.mark.requirement("SEC-06")
def test_a_person_sees_every_host_and_is_warned_of_names_that_look_like_others() -> None:
    """O03, O09: also the place that is told of a token when it is revoked."""
    world = World.usual()
    world.places[ASM] = issuer_document(
        authorization_endpoint="https://\u0430s.example.com/authorize", revocation_endpoint="https://evil.example.com/r"
    )
    world.sign_in()
    [plan] = world.plans
    assert (plan.issuer, plan.token_endpoint) == (ISSUER, f"{ISSUER}/token")
    assert any("xn--s-7sb.example.com" in warning and "look like others" in warning for warning in plan.warnings)
    assert any("evil.example.com" in warning and "another host" in warning for warning in plan.warnings)


# Challenges.


@pytest.mark.requirement("AUTH-01")
@pytest.mark.parametrize(
    ("header", "place", "scopes"),
    [
        ('Bearer resource_metadata="https://a/b", scope="x y x"', "https://a/b", ("x", "y")),
        ("bEaReR Resource_Metadata=https", "https", ()),
        ('Basic realm="Bearer resource_metadata=\\"evil\\", x", Bearer resource_metadata="good"', "good", ()),
        ('Bearer error="e", error_description="resource_metadata=\\"evil\\"", resource_metadata="good"', "good", ()),
        ('Bearer error_description="a, resource_metadata=evil", scope="s"', "", ("s",)),
        ('Bearer resource_metadata="first", resource_metadata="second"', "first", ()),
        ('Negotiate YWJj==, Bearer scope="s", Digest scope="evil", nonce="n"', "", ("s",)),
        ('Bearer , , scope = "s"', "", ("s",)),
        ('DPoP scope="x"', "", ()),
        ('Bearer resource_metadata="never ends', "", ()),
        ("resource_metadata=alone", "", ()),
        ("", "", ()),
        ("Bearer scope=" + "x" * 100_000, "", ()),
        ("\x00\xff\u2028Bearer", "", ()),
    ],
)
def test_only_what_the_bearer_challenge_itself_says_counts(header: str, place: str, scopes: tuple[str, ...]) -> None:
    """O07."""
    challenge = read_challenge(header)
    assert (challenge.resource_metadata, challenge.scopes) == (place, scopes)


@given(st.text(alphabet='Bearer sco=",\\ \t\x00é', max_size=300))
def test_any_header_is_read_without_a_crash(header: str) -> None:
    """O07."""
    read_challenge(f"Bearer {header}")


@pytest.mark.parametrize("piece", [" ", ",", "a ", "a=", 'a="', '\\"', "a=b,", "a b,", "==", "a" * 50 + " "])
def test_a_header_as_long_as_is_read_takes_no_time(piece: str) -> None:
    """O07."""
    began = time.perf_counter()
    read_challenge("Bearer " + piece * (16_000 // len(piece)) + "!")
    assert time.perf_counter() - began < 0.5


@pytest.mark.parametrize(
    ("resource", "covers"),
    [
        (SERVER, True),
        (f"{SERVER}/", True),
        ("https://mcp.example.com", True),
        ("https://mcp.example.com/v1", True),
        ("HTTPS://MCP.example.com:443/v1/mcp", True),
        ("https://mcp.example.com/v1/m", False),
        ("https://mcp.example.com/v1/mcp/deeper", False),
        ("https://mcp.example.com/v1/mcp?tenant=2", False),
        ("https://mcp.example.com.evil.example/v1/mcp", False),
        ("http://mcp.example.com/v1/mcp", False),
        ("https://mcp.example.com:8443/v1/mcp", False),
        ("https://other.example.com/v1/mcp", False),
        ("not a url", False),
        ("https://[/", False),
    ],
)
def test_a_resource_covers_a_server_by_whole_segments_of_its_own_origin(resource: str, covers: bool) -> None:
    """O13."""
    assert is_for(resource, SERVER) is covers


# Registration.


@pytest.mark.requirement("AUTH25-10", "AUTH-20")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"redirect_uris": ["https://evil.example.com/"]}, "another redirect address"),
        ({"redirect_uris": "http://127.0.0.1"}, "another redirect address"),
        ({"redirect_uris": []}, "another redirect address"),
        ({"client_id": "a\r\nX: y"}, "cannot be used"),
        ({"client_id": "\u202e"}, "cannot be used"),
        ({"client_id": ""}, "cannot be used"),
        ({"client_id": None}, "cannot be used"),
        ({"client_id": {"a": 1}}, "cannot be used"),
        ({"client_id": "x" * 5000}, "cannot be used"),
        ({"client_secret": "a\nb"}, "cannot be used"),
        ({"client_secret": 7}, "cannot be used"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, r"cannot give \(private_key_jwt\)"),
        ({"token_endpoint_auth_method": "\x1b[2J"}, r"cannot give \(␛"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "cannot give"),
    ],
)
def test_a_registration_that_is_not_what_was_asked_for_is_not_used(answer: dict[str, Any], says: str) -> None:
    """O16."""
    world = World.usual()
    world.places[f"{ISSUER}/register"] = lambda fetch: document({"client_id": "c", **(fetch.body or {}), **answer}, 201)
    with pytest.raises(SignInFailed, match=says):
        world.sign_in()
    assert not world.visits


@pytest.mark.requirement("AUTH-34", "AUTH-50")
def test_the_document_that_describes_this_client_repeats_its_address_and_where_it_comes_back_to() -> None:
    made = hosted_document("https://me.example.com/c.json", "http://127.0.0.1:8765/callback")
    assert made["client_id"] == "https://me.example.com/c.json"
    assert made["redirect_uris"] == ["http://127.0.0.1:8765/callback"]
    assert (made["client_name"], made["token_endpoint_auth_method"]) == ("mcphost", "none")
    assert "refresh_token" in made["grant_types"]


def test_another_port_in_the_configuration_makes_a_new_registration() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in())
    world.sign_in(known=known, settings=OAuthSettings(redirect_port=8765))
    assert world.plans[1].client is ClientOrigin.REGISTER
    assert world.plans[1].redirect_uri.startswith("http://127.0.0.1:8765/")


# Tokens.


def test_scopes_that_no_scope_may_be_are_dropped_wherever_they_come_from() -> None:
    """O14, O15."""
    world = World.usual(choose=lambda plan: Choice((*plan.scopes, "admin")))
    world.places[f"{ISSUER}/token"] = TOKEN | {"scope": 'a \ud800 b"c \x1b[2J d\\e ' + " ".join(map(str, range(200)))}
    grant = world.sign_in(challenge='Bearer scope="good \u202ebad"')
    assert world.visits[0]["scope"] == "good"
    assert grant.scopes[:2] == ("a", "0")
    assert len(grant.scopes) == 100
    grant.model_dump_json()


def test_an_endless_403_only_ever_asks_for_what_was_asked_before_and_what_is_new() -> None:
    """O15, AUTH-39: nothing is forgotten, and nothing asked for twice."""
    world, known = World.usual(), Credentials()
    for number in range(4):
        known = known.with_grant(
            world.sign_in(
                challenge=f'Bearer error="insufficient_scope", scope="s{number} s{number}"', status=403, known=known
            )
        )
    assert [visit["scope"] for visit in world.visits] == ["s0", "s0 s1", "s0 s1 s2", "s0 s1 s2 s3"]
    assert world.plans[-1].granted == ("s0", "s1", "s2")


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.requirement("AUTH-52")
def test_a_program_proves_itself_by_its_key_to_one_issuer_for_two_minutes(kind: str) -> None:
    key: Any = ECKey.generate_key("P-384") if kind == "EC" else RSAKey.generate_key(2048)
    pem = key.as_pem(private=True).decode()
    settings = OAuthSettings(client_id="machine", private_key=pem, grant="client_credentials")
    world = World.usual()
    world.places[ASM] = issuer_document(token_endpoint_auth_methods_supported=["private_key_jwt"])
    grant = world.sign_in(settings=settings)
    world.sign_in(settings=settings)
    forms = world.bodies("/token")
    assert forms[0]["grant_type"] == "client_credentials"
    assert forms[0]["resource"] == SERVER
    assert forms[0]["client_assertion_type"].endswith(":jwt-bearer")
    tokens = [jwt.decode(form["client_assertion"], key, algorithms=["ES384", "RS256"]) for form in forms]
    claims = dict(tokens[0].claims)
    assert tokens[0].header["alg"] == {"EC": "ES384", "RSA": "RS256"}[kind]
    assert claims.pop("jti") != tokens[1].claims["jti"]
    times = {"iat": int(NOW), "exp": int(NOW) + 120}
    assert claims == {"iss": "machine", "sub": "machine", "aud": ISSUER, **times}
    assert pem.splitlines()[1] not in (repr(settings) + grant.model_dump_json())


KEYS: dict[str, Callable[[], str]] = {
    "words": lambda: "some-words",
    "half a PEM": lambda: "-----BEGIN PRIVATE KEY-----",
    "a secret": lambda: str(OctKey.generate_key(256).as_dict()["k"]),
    "a curve that is not used": lambda: ECKey.generate_key("secp256k1").as_pem(private=True).decode(),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_cannot_be_used_is_said_so_without_showing_it(key: Callable[[], str]) -> None:
    made = key()
    settings = OAuthSettings(client_id="machine", private_key=made, grant="client_credentials")
    with pytest.raises(SignInFailed, match="no PEM of an EC or RSA key") as told:
        World.usual().sign_in(settings=settings)
    assert made not in str(told.value)


def test_a_program_without_an_id_is_told_what_it_needs() -> None:
    with pytest.raises(SignInFailed, match=r"needs oauth\.client_id"):
        World.usual().sign_in(settings=OAuthSettings(client_secret="s", grant="client_credentials"))


def test_the_configured_secret_is_the_one_that_is_sent_also_after_it_was_changed() -> None:
    world = World.usual()
    old, new = (OAuthSettings(client_id="mine", client_secret=secret) for secret in ("old-secret", "new-secret"))
    grant = world.sign_in(settings=old)
    assert "old-secret" not in grant.model_dump_json()
    world.places[f"{ISSUER}/token"] = TOKEN
    world.work(refresh(grant, new, lambda: NOW))
    assert world.asked[-1].headers["Authorization"] != world.asked[-2].headers["Authorization"]


# What is shown.

SENT = Fetch("t", f"{ISSUER}/token", "token", {"Authorization": "Basic abc"}, {"code": "canary-code", "x": "y z"})


@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "canary-token", "note": "canary-token again", "list": [{"refresh_token": "canary-refresh"}]},
        {"Access_Token": "canary-token", "a": {"ID_TOKEN": {"deep": "canary-token"}}},
        {"error": "x", "error_description": "the code canary-code was used"},
        {"access_token": 'canary"quoted', "echo": 'canary"quoted'},
        {"registration_access_token": ["canary-token"]},
    ],
)
def test_a_step_shows_everything_but_what_is_secret_wherever_it_turns_up(answer: Any) -> None:
    """C10."""
    got = Fetched(
        200, {"set-cookie": "canary-cookie", "x-echo": "canary-code", "x-other": "seen"}, document(answer).content
    )
    shown = f"{masking.request_headers(SENT)} {masking.request_body(SENT)} {masking.response_headers(SENT, got)}"
    shown += masking.response_body(SENT, got)
    assert "canary" not in shown
    assert "x=y z" in shown
    assert "seen" in shown


@pytest.mark.parametrize(
    "content",
    [b"access_token=canary", b"{", b"[" * 100_000, b'{"a":' * 400 + b"1" + b"}" * 400],
    ids=["a form", "half an object", "too deep", "deep"],
)
def test_what_cannot_be_read_is_not_shown_where_it_could_be_a_token(content: bytes) -> None:
    """C10, C11."""
    assert "canary" not in masking.response_body(SENT, Fetched(200, {}, content))
