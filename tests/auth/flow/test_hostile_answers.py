"""Answers by which servers and authorization servers try to lead a sign-in astray."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.callback import authorization_url
from mcphost.auth.flow.metadata import is_for
from mcphost.errors import SignInFailed
from mcphost.protocol.challenge import read_challenge
from tests.auth.flow.flows import ISSUER, SERVER, World, issuer_document, resource_document

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
    "full-width digits": ("https://１２７.0.0.1/", "is not a URL"),
    "half a surrogate": ("https://as.example.com/\ud800", "is not a URL"),
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
    "octal": ("https://0177.0.0.1/", "is not a URL"),
    "decimal": ("https://2130706433/", "hides it"),
    "short": ("https://127.1/", "hides it"),
    "a dot at the end": ("https://127.0.0.1./", "hides it"),
}


@pytest.mark.hostile("O01", "O02", "O03", "O05", "O06")
@pytest.mark.requirement("SEC-10", "SEC-11", "AUTH-19")
@pytest.mark.parametrize("at", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "issuer", "place"])
@pytest.mark.parametrize(("url", "says"), REFUSED.values(), ids=REFUSED)
def test_a_forbidden_address_ends_the_sign_in(url: str, says: str, at: str) -> None:
    world = World.usual()
    challenge = "Bearer"
    if at == "issuer":
        world.places[PRM] = resource_document(authorization_servers=[url])
    elif at == "place":
        quoted = url.replace("\\", "\\\\")
        challenge = f'Bearer resource_metadata="{quoted}"'
        del world.places[PRM]
    else:
        world.places[ASM] = issuer_document(**{at: url})
    with pytest.raises(SignInFailed, match=says) as told:
        world.sign_in(challenge=challenge)
    own = PRM.removesuffix("/v1/mcp")
    assert world.urls() == {"place": [PRM, own], "issuer": [PRM]}.get(at, [PRM, ASM])
    assert not world.visits
    assert len(str(told.value)) < 400
    assert not {"\x1b", "\n", "\x9b", "\ud800"} & {*str(told.value)}


@pytest.mark.hostile("O06")
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
def test_public_addresses_and_the_servers_own_network_may_be_used(url: str, home: str) -> None:
    assert checked_url("place", url, home) == url


@pytest.mark.hostile("O05")
@pytest.mark.requirement("AUTH25-08", "AUTH-19")
def test_no_sign_in_without_tls() -> None:
    world = World.usual()
    with pytest.raises(SignInFailed, match="is http, not https"):
        world.sign_in("http://mcp.example.com/v1/mcp")
    assert not world.asked


@pytest.mark.hostile("O06", "O07")
@pytest.mark.requirement("SEC-10")
def test_metadata_about_the_server_is_taken_from_its_own_origin_alone() -> None:
    """A place on another host is not fetched; the plan says so, and that a challenge cannot be read."""
    world = World.usual()
    assert world.sign_in(challenge='Bearer resource_metadata="https://evil.example.com/x"').issuer == ISSUER
    assert world.urls()[0] == PRM
    assert f"another host, evil.example.com: not fetched; this plan follows the metadata at {PRM}" in world.warnings()
    assert world.sign_in(challenge="Bearer " + "x" * 100_000).issuer == ISSUER
    assert "part of the server's challenge cannot be read: 'Bearer xxx" in world.warnings()
    assert not [url for url in world.urls() if "evil" in url]


OURS = {"client_id": "c", "state": "s", "response_type": "code"}


@pytest.mark.hostile("O02", "O03", "O04")
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
def test_our_parameters_win_in_the_authorization_url(endpoint: str, begins: str) -> None:
    assert authorization_url(endpoint, OURS).startswith(begins)


@pytest.mark.hostile("O02")
@given(st.text(max_size=60), st.text(max_size=60))
def test_the_address_for_the_browser_holds_only_what_an_address_may(path: str, query: str) -> None:
    try:
        endpoint = checked_url("place", f"https://as.example.com/{path}?{query}", SERVER)
        full = authorization_url(endpoint, OURS)
    except SignInFailed:
        return
    assert full.startswith("https://as.example.com/")
    assert full.isascii()
    assert not {*full} & {*" \"'`<>{}|\\^[]#\n\r\t"} - {"'"}
    assert full.count("client_id=c&state=s") == 1


@pytest.mark.hostile("O04")
@pytest.mark.parametrize("query", ["a=1&a=2", "state=1&state=2"])
def test_an_endpoint_that_names_a_parameter_twice_is_refused(query: str) -> None:
    with pytest.raises(SignInFailed, match="twice"):
        authorization_url(f"https://as.example.com/a?{query}", OURS)


@pytest.mark.hostile("O03", "O09")
@pytest.mark.requirement("SEC-06")
def test_the_plan_names_every_host_and_warns_of_lookalikes() -> None:
    """Also the revocation endpoint, which gets the token."""
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


@pytest.mark.hostile("O07")
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
        ('Digest scope="x"', "", ()),
        ('Bearer resource_metadata="never ends', "", ()),
        ("resource_metadata=alone", "alone", ()),
        ("", "", ()),
        ("Bearer scope=" + "x" * 100_000, "", ()),
        ("\x00\xff\u2028Bearer", "", ()),
    ],
)
def test_only_what_the_challenge_for_a_token_says_counts(header: str, place: str, scopes: tuple[str, ...]) -> None:
    challenge = read_challenge(header)
    assert (challenge.resource_metadata, challenge.scopes) == (place, scopes)


@pytest.mark.requirement("DPOP-08")
@pytest.mark.parametrize(
    "header",
    [
        'DPoP algs="ES256", scope="x", resource_metadata="https://mcp.example.com/here"',
        'Bearer resource_metadata="https://mcp.example.com/here", scope="x", DPoP algs="ES256", scope="y"',
        'dpop algs="ES256", error="use_dpop_nonce", Bearer scope="x", resource_metadata="https://mcp.example.com/here"',
        'Basic realm="r", DPoP algs="RS256 ES256" scope=x, Bearer resource_metadata="https://mcp.example.com/here"',
    ],
)
def test_a_challenge_with_dpop_starts_discovery(header: str) -> None:
    world = World.usual()
    grant = world.sign_in(challenge=header)
    assert world.urls()[0] == "https://mcp.example.com/here"
    assert (grant.issuer, grant.asked) == (ISSUER, ("x",))
    assert "ES256" in (read_challenge(header).dpop or {})["algs"]


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (
            "Bearer resource_metadata=https://h/p?a=b, scope=read",
            {"resource_metadata": "https://h/p?a=b", "scope": "read"},
        ),
        ("Bearer resource_metadata='https://h/p', scope='a b'", {"resource_metadata": "https://h/p", "scope": "a b"}),
        (
            'Bearer error="e" resource_metadata="p" scope="a b"',
            {"error": "e", "resource_metadata": "p", "scope": "a b"},
        ),
        ('Bearer error="e"; resource_metadata="p"; scope=a', {"error": "e", "resource_metadata": "p", "scope": "a"}),
        ('resource_metadata="p", scope="a"', {"resource_metadata": "p", "scope": "a"}),
        ("Bearer scope=https://h/x.read", {"scope": "https://h/x.read"}),
        ("Bearer scope=read write, error=e", {"scope": "read write", "error": "e"}),
        (
            "Bearer error=e, error_description=it expired, sign in again, scope=a",
            {"error": "e", "error_description": "it expired, sign in again", "scope": "a"},
        ),
        ("Bearer error=e, Basic", {"error": "e"}),
        ('Bearer realm="r", Bearer realm="s", scope="a", Basic scope="b"', {"realm": "r", "scope": "a"}),
        ("Bearer", {}),
    ],
)
def test_a_challenge_that_is_slightly_off_is_read(header: str, read: dict[str, str]) -> None:
    challenge = read_challenge(header)
    assert (challenge.parameters, challenge.unread) == (read, "")


@pytest.mark.parametrize(
    ("header", "unread"),
    [
        ('Bearer resource_metadata="never ends', 'resource_metadata="never ends'),
        ('Bearer scope="a" "b", error="e"', '"b", error="e"'),
        ('Bearer scope="a" b', "b"),
        ("Bearer " + "x" * 20_000, "Bearer xxx"),
    ],
)
def test_the_unreadable_part_of_a_challenge_is_in_the_plan(header: str, unread: str) -> None:
    world = World.usual()
    world.sign_in(challenge=header)
    assert f"part of the server's challenge cannot be read: '{unread}" in world.warnings()


@pytest.mark.hostile("O07")
@given(st.text(alphabet='Bearer sco=",\\ \t\x00é', max_size=300))
def test_any_header_is_read_without_a_crash(header: str) -> None:
    read_challenge(f"Bearer {header}")


@pytest.mark.hostile("O07")
@pytest.mark.parametrize(
    "piece", [" ", ",", "a ", "a=", 'a="', "a='", "a=b ", ";", '\\"', "a=b,", "a b,", "==", "a" * 50 + " "]
)
def test_a_header_as_long_as_is_read_takes_no_time(piece: str) -> None:
    began = time.thread_time()
    read_challenge("Bearer " + piece * (16_000 // len(piece)) + "!")
    assert time.thread_time() - began < 0.5


@pytest.mark.hostile("O13")
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
def test_a_resource_covers_whole_path_segments_of_its_origin(resource: str, covers: bool) -> None:
    assert is_for(resource, SERVER) is covers
