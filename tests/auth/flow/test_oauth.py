"""The sign-in flow, step by step: what it asks, of whom, in which order, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.auth.flow.callback import s256
from mcphost.auth.flow.oauth import refresh
from mcphost.auth.flow.steps import HttpAnswer, Unreachable
from mcphost.auth.ports import ClientOrigin, OAuthSettings, SignInConsent
from mcphost.auth.storage.credentials import ClientRegistration, Credentials
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import ISSUER, NOW, SERVER, TOKEN, World, document, issuer_document, resource_document

PRM = "https://mcp.example.com/.well-known/oauth-protected-resource"
ASM = f"{ISSUER}/.well-known/oauth-authorization-server"


@pytest.mark.requirement(
    "AUTH-02", "AUTH-05", "AUTH-08", "AUTH-11", "AUTH-12", "AUTH-21", "AUTH-30", "AUTH-47", "AUTH-50"
)
def test_a_server_of_2025_11_25_is_signed_in_to() -> None:
    world = World.usual()
    grant = world.sign_in()
    assert world.urls() == [f"{PRM}/v1/mcp", ASM, f"{ISSUER}/register", f"{ISSUER}/token"]
    [registered], [visit], [exchanged] = world.bodies("/register"), world.visits, world.bodies("/token")
    assert registered["application_type"] == "native"
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    assert registered["redirect_uris"] == [visit["redirect_uri"]] == [exchanged["redirect_uri"]]
    assert "scope" not in registered
    assert visit["code_challenge"] == s256(exchanged["code_verifier"])
    assert visit["code_challenge_method"] == "S256"
    assert visit["resource"] == exchanged["resource"] == SERVER
    assert (grant.access_token, grant.refresh_token, grant.expires_at) == ("token-1", "refresh-1", NOW + 3600)


@pytest.mark.requirement("AUTH-11")
def test_each_attempt_has_a_verifier_and_a_state_of_its_own() -> None:
    world = World.usual()
    world.sign_in()
    world.sign_in()
    assert len({visit["state"] for visit in world.visits}) == 2
    assert len({body["code_verifier"] for body in world.bodies("/token")}) == 2


@pytest.mark.requirement("AUTH-26")
def test_without_a_hint_metadata_is_tried_at_the_path_then_the_root() -> None:
    world = World.usual()
    world.places[PRM] = world.places.pop(f"{PRM}/v1/mcp")
    world.sign_in()
    assert world.urls()[:2] == [f"{PRM}/v1/mcp", PRM]


@pytest.mark.requirement("AUTH-01")
def test_the_place_that_the_challenge_names_is_the_only_one_asked() -> None:
    world = World.usual()
    world.places["https://mcp.example.com/meta"] = world.places.pop(f"{PRM}/v1/mcp")
    world.sign_in(challenge='Basic realm="x, y", bearer error="e", resource_metadata="https://mcp.example.com/meta"')
    assert world.urls()[:2] == ["https://mcp.example.com/meta", ASM]


@pytest.mark.requirement("AUTH-27", "AUTH-28")
@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        (ISSUER, ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        (
            f"{ISSUER}/t",
            [
                "/.well-known/oauth-authorization-server/t",
                "/.well-known/openid-configuration/t",
                "/t/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_an_issuers_metadata_is_sought_in_the_specifications_order(issuer: str, places: list[str]) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(authorization_servers=[issuer])
    del world.places[ASM]
    world.places[ISSUER + places[-1]] = issuer_document(issuer, registration_endpoint=f"{ISSUER}/register")
    world.places[f"{issuer}/token"] = TOKEN
    world.sign_in()
    assert world.urls()[1 : 1 + len(places)] == [ISSUER + place for place in places]


OWN = "https://mcp.example.com"

NO_METADATA = {
    "a server error": (HttpAnswer(502, {}, b"<h1>Bad Gateway"), "HTTP 502"),
    "a redirect": (HttpAnswer(307, {"location": "https://evil.example.com/"}, b""), "HTTP 307"),
    "no content": (HttpAnswer(204, {}, b""), "HTTP 204"),
    "words": (HttpAnswer(200, {"content-type": "text/plain"}, b"OK"), "not JSON (text/plain); it begins with 'OK'"),
    "nothing": (HttpAnswer(200, {}, b""), "it is not JSON (without a content type)"),
    "a list": (document([]), "it is not a JSON object"),
    "other members": (document({"error": "not found"}), "it names no "),
    "a page": (HttpAnswer(200, {"content-type": "text/html"}, b"<html>"), "a web page"),
    "no response": (Unreachable("connection refused"), "connection refused"),
    "a refusal": (HttpAnswer(403, {}, b""), "HTTP 403"),
}  # fmt: skip


@pytest.mark.requirement("AUTH-26", "AUTH-27")
@pytest.mark.parametrize(("answer", "says"), NO_METADATA.values(), ids=NO_METADATA)
def test_a_place_without_metadata_lets_the_next_one_be_asked(answer: Any, says: str) -> None:
    world = World.usual()
    world.places |= {f"{PRM}/v1/mcp": answer, PRM: resource_document()}
    world.places |= {ASM: answer, f"{ISSUER}/.well-known/openid-configuration": issuer_document()}
    assert world.sign_in().issuer == ISSUER
    assert "evil" not in "".join(world.urls())
    world.places |= {PRM: answer, f"{ISSUER}/.well-known/openid-configuration": answer}
    if says in ("HTTP 403", "a web page"):  # there is no metadata, as before 2025-06-18
        world.places[f"{PRM}/v1/mcp"] = resource_document()
        failing = [ASM, f"{ISSUER}/.well-known/openid-configuration"]
    else:
        failing = [f"{PRM}/v1/mcp", PRM]
    with pytest.raises(SignInFailed) as told:
        world.sign_in()
    for place in failing:
        assert place in str(told.value)
    assert says in str(told.value)


def test_metadata_below_an_issuers_path_is_tried_last() -> None:
    world, issuer = World.usual(), f"{ISSUER}/t"
    world.places[f"{PRM}/v1/mcp"] = resource_document(authorization_servers=[issuer])
    world.places[f"{issuer}/.well-known/oauth-authorization-server"] = issuer_document(
        issuer, token_endpoint=f"{ISSUER}/token", registration_endpoint=f"{ISSUER}/register"
    )
    assert world.sign_in().issuer == issuer
    assert len([url for url in world.urls() if "well-known" in url and url.startswith(ISSUER)]) == 4


@pytest.mark.requirement("AUTH-01")
@pytest.mark.parametrize(
    ("named", "asked", "says"),
    [
        ("/meta/prm", f"{OWN}/meta/prm", ""),
        ("/meta/other", f"{OWN}/meta/other", f"holds no metadata: {OWN}/meta/other: HTTP 404"),
        ("http://mcp-backend:8080/prm", None, "is http, not https"),
        ("https://mcp-backend/prm", None, "another host, mcp-backend: not fetched"),
        ("https://169.254.169.254/prm", None, "private network"),
        ("//evil.example.com/prm", None, "neither https nor http"),
        ("https://{host}/prm", None, "names no host"),
        ("meta/prm", None, "neither https nor http"),
    ],
)
def test_an_unusable_metadata_hint_falls_back_to_well_known_urls(named: str, asked: str | None, says: str) -> None:
    """And the plan says so, since it is another one than the server named."""
    world = World.usual()
    world.places[f"{OWN}/meta/prm"] = resource_document()
    assert world.sign_in(challenge=f'Bearer resource_metadata="{named}"').issuer == ISSUER
    assert world.urls()[0] == (asked or f"{PRM}/v1/mcp")
    assert bool(says) is ("this plan follows the metadata at" in world.warnings())
    assert says in world.warnings()
    del world.places[f"{PRM}/v1/mcp"], world.places[f"{OWN}/meta/prm"]
    if asked is None:  # what the server of 2025-03-26 would be asked for is not what this one named
        with pytest.raises(SignInFailed, match=says):
            world.sign_in(challenge=f'Bearer resource_metadata="{named}"')


@pytest.mark.parametrize("named", [{}, {"authorization_servers": []}, {"authorization_servers": None}])
def test_metadata_without_an_issuer_falls_back_to_the_origin(named: dict[str, Any]) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = {"resource": SERVER, **named}
    with pytest.raises(SignInFailed, match=f"{OWN} publishes no metadata"):
        world.sign_in()  # at no default endpoints
    world.places |= {
        f"{OWN}/.well-known/oauth-authorization-server": issuer_document(OWN),
        f"{OWN}/register": lambda fetch: document({"client_id": "c"}, 201),
        f"{OWN}/token": TOKEN,
    }
    assert world.sign_in().issuer == OWN
    assert "names no authorization server" in world.warnings()


@pytest.mark.parametrize("named", [ISSUER, {"issuer": ISSUER}, [7], [""]])
def test_authorization_servers_of_a_wrong_type_are_refused(named: Any) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(authorization_servers=named)
    with pytest.raises(SignInFailed, match="the server's mistake"):
        world.sign_in()


@pytest.mark.requirement("AUTH-04")
def test_an_authorization_server_in_use_is_asked_first_among_several() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in())
    other = "https://other.example.com"
    world.places |= {
        f"{PRM}/v1/mcp": resource_document(authorization_servers=[other, ISSUER]),
        f"{other}/.well-known/oauth-authorization-server": issuer_document(other),
    }
    assert world.sign_in(known=known).issuer == ISSUER
    assert not [url for url in world.urls() if url.startswith(other)]


SLASH = OAuthSettings(issuer_slash="ignore")


@pytest.mark.hostile("O08", "O10")
@pytest.mark.parametrize("where", ["named", "metadata", "answer", "configured"])
@pytest.mark.parametrize(("issuer", "passes"), [(f"{ISSUER}/", True), (f"{ISSUER}//", False), (ISSUER.upper(), False)])
def test_an_issuer_differs_by_a_slash_only_if_configured(where: str, issuer: str, passes: bool) -> None:
    def back(sent: dict[str, str]) -> dict[str, Any]:
        return {"code": "c", "state": sent["state"], **({"iss": issuer} if where == "answer" else {})}

    world, settings = World.usual(redirect=back), SLASH
    if where == "named":
        world.places[f"{PRM}/v1/mcp"] = resource_document(authorization_servers=[issuer])
    elif where == "metadata":
        world.places[ASM] = issuer_document() | {"issuer": issuer}
    elif where == "configured":
        settings = OAuthSettings(issuer_slash="ignore", issuer=issuer)
    with pytest.raises(SignInFailed) as told:
        world.sign_in(settings=OAuthSettings(issuer=settings.issuer))
    assert ('oauth.issuer_slash = "ignore"' in str(told.value)) is passes
    if passes:
        assert world.sign_in(settings=settings).access_token == "token-1"
    else:
        with pytest.raises(SignInFailed):
            world.sign_in(settings=settings)


@pytest.mark.hostile("O13")
@pytest.mark.parametrize("resource", ["http://mcp.example.com/v1/mcp", "https://backend.internal/mcp", "urn:app:mcp"])
def test_another_resource_is_accepted_only_if_configured(resource: str) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(resource=resource)
    with pytest.raises(SignInFailed, match=f'oauth.resource = "{resource}"'):
        world.sign_in(settings=OAuthSettings(resource=f"{resource}/"))
    accepts = OAuthSettings(resource=resource)
    grant = world.sign_in(settings=accepts)
    assert world.visits[0]["resource"] == world.bodies("/token")[0]["resource"] == grant.resource == resource
    known = Credentials().with_grant(grant)
    assert known.grant_for(SERVER, resource) == grant
    assert known.grant_for(SERVER) is known.grant_for(SERVER, "urn:other") is None
    assert known.grant_for("https://moved.example.com/mcp", resource) is None  # the entry's address was changed


@pytest.mark.requirement("AUTH-50")
def test_the_redirect_host_is_configurable() -> None:
    world, localhost = World.usual(), OAuthSettings(redirect_host="localhost")
    known = Credentials().with_grant(world.sign_in())
    assert world.plans[0].redirect_uri.startswith("http://127.0.0.1:40000/")
    world.sign_in(settings=localhost, known=known)
    assert world.plans[1].client is ClientOrigin.REGISTER
    assert world.visits[1]["redirect_uri"].startswith("http://localhost:40000/")
    assert world.bodies("/register")[1]["redirect_uris"] == [world.visits[1]["redirect_uri"]]


@pytest.mark.requirement("AUTH-04")
def test_the_second_issuer_is_used_if_the_first_is_down() -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(authorization_servers=["https://down.example.com", ISSUER])
    world.places["https://down.example.com/.well-known/oauth-authorization-server"] = Unreachable("refused")
    assert world.sign_in().issuer == ISSUER


@pytest.mark.requirement("AUTH-12", "AUTH-24")
def test_a_renewal_keeps_issuer_and_resource() -> None:
    world = World.usual()
    grant = world.sign_in()
    renewed = world.work(refresh(grant, OAuthSettings(), lambda: NOW))
    exchanged, renewal = world.bodies("/token")
    assert renewal == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh-1",
        "resource": SERVER,
        "client_id": exchanged["client_id"],
    }
    assert (renewed.resource, renewed.issuer, renewed.client) == (SERVER, ISSUER, grant.client)


OTHER = "https://other.example.com"


@pytest.mark.hostile("O16")
@pytest.mark.requirement("AUTH-04", "AUTH-46")
@pytest.mark.parametrize(
    ("named", "pinned", "used"),
    [
        ([OTHER, ISSUER], ISSUER, ISSUER),
        ([ISSUER, OTHER], "", ISSUER),
        ([ISSUER], OTHER, None),
        ([ISSUER], f"{ISSUER}/", None),
        ([], OTHER, None),
        ([], "https://mcp.example.com", "https://mcp.example.com"),
    ],
)
def test_a_configured_issuer_is_the_only_one_asked(named: list[str], pinned: str, used: str | None) -> None:
    """Without any the error names the others; a server of 2025-03-26 is its own issuer."""
    world = World.usual()
    world.places |= {
        f"{OTHER}/.well-known/oauth-authorization-server": issuer_document(OTHER),
        "https://mcp.example.com/register": lambda fetch: document({"client_id": "c"}, 201),
        "https://mcp.example.com/token": TOKEN,
        f"{PRM}/v1/mcp": resource_document(authorization_servers=named) if named else HttpAnswer(404, {}, b""),
    }
    if used is None:
        with pytest.raises(
            SignInFailed, match=rf"allows '{pinned}' alone, and the server names https://.*oauth\.issuer"
        ):
            world.sign_in(settings=OAuthSettings(issuer=pinned))
        assert not [url for url in world.urls() if not url.startswith(PRM)]
        return
    assert world.sign_in(settings=OAuthSettings(issuer=pinned)).issuer == used
    assert not [url for url in world.urls() if OTHER in url]
    told = [text for text in world.plans[0].warnings if "other authorization servers" in text]
    assert bool(told) is (len(named) > 1 and not pinned)


@pytest.mark.requirement("AUTH-06")
def test_a_named_issuer_has_no_default_endpoints() -> None:
    world = World.usual()
    del world.places[ASM]
    with pytest.raises(SignInFailed, match="publishes no metadata"):
        world.sign_in()
    assert not world.visits


@pytest.mark.requirement("AUTH25-02", "AUTH25-03", "AUTH25-05", "AUTH25-06", "AUTH-07")
def test_an_old_server_is_its_own_issuer() -> None:
    base = "https://mcp.example.com"
    world = World({
        f"{base}/.well-known/oauth-authorization-server":
            issuer_document(base, authorization_endpoint=f"{base}/o/auth"),
        f"{base}/register": lambda fetch: document({"client_id": "c"}, 201),
        f"{base}/token": TOKEN,
    })  # fmt: skip
    world.sign_in()
    assert f"{base}/.well-known/oauth-authorization-server" in world.urls()
    assert world.endpoints == [f"{base}/o/auth"]
    assert all(fetch.headers.get("MCP-Protocol-Version") for fetch in world.asked if fetch.kind == "metadata")


@pytest.mark.requirement("AUTH25-04", "AUTH-07")
def test_an_old_server_that_announces_nothing_has_the_default_places() -> None:
    base = "https://mcp.example.com"
    world = World({f"{base}/register": lambda fetch: document({"client_id": "c"}), f"{base}/token": TOKEN})
    world.sign_in()
    assert world.endpoints == [f"{base}/authorize"]
    assert "announces no sign-in" in world.plans[0].warnings[0]


@pytest.mark.hostile("O12")
@pytest.mark.requirement("AUTH-29", "AUTH-07")
@pytest.mark.parametrize(
    ("methods", "says"),
    [
        (None, "does not say that it checks PKCE"),
        ([], "names no PKCE method"),
        ("S256", "gives its PKCE methods not as a list"),
        (["plain"], "checks PKCE, but not by S256"),
    ],
)
@pytest.mark.parametrize("absent", [True, False])
def test_an_issuer_without_s256_is_refused_unless_overridden(methods: Any, says: str, absent: bool) -> None:
    world = World.usual()
    named = {} if methods is None and absent else {"code_challenge_methods_supported": methods}
    world.places[ASM] = issuer_document(code_challenge_methods_supported=None) | named
    with pytest.raises(SignInFailed, match=says):
        world.sign_in()
    assert not world.plans
    world.sign_in(settings=OAuthSettings(without_pkce_metadata=True))
    assert any("PKCE" in warning for warning in world.plans[0].warnings)
    assert world.visits[0]["code_challenge_method"] == "S256"


@pytest.mark.requirement("AUTH-31", "AUTH-32", "AUTH-51")
@pytest.mark.parametrize(
    ("challenge", "listed", "offline", "sent"),
    [
        ('Bearer scope="a unlisted"', ["b"], False, "a unlisted"),
        ("Bearer", ["b", "c"], False, "b c"),
        ("Bearer", None, True, None),
        ("Bearer", ["b"], True, "b offline_access"),
    ],
)
def test_scopes_come_from_the_challenge_else_the_resource(
    challenge: str, listed: list[str] | None, offline: bool, sent: str | None
) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(**({} if listed is None else {"scopes_supported": listed}))
    world.places[ASM] = issuer_document(scopes_supported=["offline_access"] if offline else ["openid"])
    world.sign_in(challenge=challenge)
    assert world.visits[0].get("scope") == sent


def test_the_person_can_remove_scopes_and_add_none() -> None:
    world = World.usual(choose=lambda plan: SignInConsent(("a", "admin")))
    world.sign_in(challenge='Bearer scope="a b"')
    assert world.visits[0]["scope"] == "a"


@pytest.mark.requirement("AUTH-37", "AUTH-39")
def test_additional_scopes_join_the_granted_ones() -> None:
    world = World.usual()
    first = world.sign_in(challenge='Bearer scope="read"')
    world.sign_in(
        challenge='Bearer error="insufficient_scope", scope="write"',
        status=403,
        known=Credentials().with_grant(first),
    )
    assert world.visits[1]["scope"] == "read write"
    assert len(world.bodies("/register")) == 1
    assert world.plans[1].granted == ("read",)


@pytest.mark.requirement("AUTH-37", "AUTH-45")
def test_another_issuer_gets_only_named_and_configured_scopes() -> None:
    """Scopes held at the old one are neither asked for nor shown."""
    world = World.usual()
    known = Credentials().with_grant(world.sign_in(challenge='Bearer scope="read"'))
    other = "https://other.example.com"
    world.places |= {
        f"{PRM}/v1/mcp": resource_document(authorization_servers=[other]),
        f"{other}/.well-known/oauth-authorization-server": issuer_document(other),
        f"{other}/register": lambda fetch: document({"client_id": "client-2"}),
        f"{other}/token": TOKEN,
    }
    more = 'Bearer error="insufficient_scope", scope="write"'
    world.sign_in(challenge=more, status=403, known=known)
    assert (world.visits[-1]["scope"], world.plans[-1].granted) == ("write", ())
    world.sign_in(challenge=more, status=403, known=known, settings=OAuthSettings(scopes=("own",)))
    assert world.visits[-1]["scope"] == "own write"


@pytest.mark.requirement("AUTH-31")
@pytest.mark.parametrize(
    ("challenged", "sent"), [("write", "read write"), ("read", "read"), ("read write", "read write")]
)
def test_a_401_that_names_another_scope_keeps_what_was_held(challenged: str, sent: str) -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in(challenge='Bearer scope="read"'))
    world.sign_in(challenge=f'Bearer scope="{challenged}"', known=known)
    assert world.visits[-1]["scope"] == sent


@pytest.mark.requirement("AUTH-37", "AUTH-39")
def test_scopes_of_options_join_those_of_a_refusal() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in(challenge='Bearer scope="read"'))
    world.sign_in(
        challenge='Bearer error="insufficient_scope"', status=403, known=known, settings=OAuthSettings(scopes=("b",))
    )
    assert world.visits[-1]["scope"] == "read b"


@pytest.mark.parametrize("error", [None, ""])
def test_a_token_answer_with_an_empty_error_is_a_token(error: str | None) -> None:
    def back(sent: dict[str, str]) -> dict[str, Any]:
        return {"code": "c", "state": sent["state"], "error": "", "error_description": ""}

    world = World.usual(redirect=back)
    world.places[f"{ISSUER}/token"] = TOKEN | {"error": error, "error_description": error}
    world.places[f"{ISSUER}/register"] = lambda fetch: document({"client_id": "c", "error": error}, 201)
    grant = world.sign_in()
    assert grant.access_token == "token-1"
    assert world.work(refresh(grant, OAuthSettings(), lambda: NOW)).access_token == "token-1"


@pytest.mark.requirement("AUTH-09", "AUTH-33", "AUTH-35", "AUTH-36", "AUTH-10")
def test_client_ids_are_taken_in_the_documented_order() -> None:
    url = "https://me.example.com/client.json"
    full = OAuthSettings(client_id="mine", client_metadata_url=url)

    def origin(settings: OAuthSettings, **more: Any) -> tuple[ClientOrigin, str]:
        world = World.usual(choose=lambda plan: SignInConsent(plan.scopes, client_id="typed"))
        world.places[ASM] = issuer_document(client_id_metadata_document_supported=True, **more)
        world.sign_in(settings=settings)
        return world.plans[-1].client, world.visits[-1]["client_id"]

    assert origin(full) == (ClientOrigin.CONFIGURED, "mine")
    assert origin(OAuthSettings(client_metadata_url=url)) == (ClientOrigin.DOCUMENT, url)
    assert origin(OAuthSettings()) == (ClientOrigin.REGISTER, "client-1")
    assert origin(OAuthSettings(), registration_endpoint=None) == (ClientOrigin.ASKED, "typed")


@pytest.mark.requirement("AUTH-48")
def test_a_refused_registration_tells_why_and_asks_for_a_client_id() -> None:
    world = World.usual(choose=lambda plan: SignInConsent(plan.scopes, client_id="typed"))
    world.places[f"{ISSUER}/register"] = document(
        {"error": "invalid_redirect_uri", "error_description": "no http"}, 400
    )
    world.sign_in()
    assert [plan.client for plan in world.plans] == [ClientOrigin.REGISTER, ClientOrigin.ASKED]
    assert "invalid_redirect_uri" in world.plans[1].problem
    assert "no http" in world.plans[1].problem
    assert world.visits[0]["client_id"] == "typed"


def test_a_known_client_keeps_its_port_or_registers_again() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in())
    world.sign_in(known=known)
    assert world.plans[1].client is ClientOrigin.KNOWN
    assert len(world.bodies("/register")) == 1
    world.port = 50_000  # the old one is taken
    world.sign_in(known=known)
    assert world.plans[2].client is ClientOrigin.REGISTER
    assert world.bodies("/register")[1]["redirect_uris"][0].startswith("http://127.0.0.1:50000/")


BASIC: tuple[str, dict[str, str]] = ("Basic aWQlM0ExOnMlMkJlY3JldA==", {})


@pytest.mark.requirement("AUTH-52")
@pytest.mark.parametrize(
    ("offered", "settings", "seen"),
    [
        (["none"], OAuthSettings(client_id="id:1"), ("", {"client_id": "id:1"})),
        (["client_secret_basic"], OAuthSettings(client_id="id:1", client_secret="s+ecret"), BASIC),
        (None, OAuthSettings(client_id="id:1", client_secret="s+ecret"), BASIC),
        (
            ["client_secret_post"],
            OAuthSettings(client_id="i", client_secret="s"),
            ("", {"client_id": "i", "client_secret": "s"}),
        ),
    ],
)  # fmt: skip
def test_a_client_proves_itself_as_the_issuer_takes_it(
    offered: list[str] | None, settings: OAuthSettings, seen: tuple[str, dict[str, str]]
) -> None:
    world = World.usual()
    world.places[ASM] = issuer_document(token_endpoint_auth_methods_supported=offered)
    world.sign_in(settings=settings)
    request = world.asked[-1]
    proof = {name: value for name, value in (request.body or {}).items() if name.startswith("client_")}
    assert (request.headers.get("Authorization", ""), proof) == seen


@pytest.mark.hostile("O10")
@pytest.mark.requirement("AUTH-40", "AUTH-41", "AUTH-42")
@pytest.mark.parametrize(
    ("sends", "iss", "taken"),
    [
        (True, ISSUER, True),
        (False, ISSUER, True),
        (False, None, True),
        (True, None, False),
        (True, f"{ISSUER}/", False),
        (False, "https://evil.example.com", False),
        (False, ISSUER.upper(), False),
        (True, (ISSUER, ISSUER), False),
    ],
)
def test_the_issuer_in_the_response_is_compared_as_text(sends: bool, iss: Any, taken: bool) -> None:
    def back(sent: dict[str, str]) -> dict[str, Any]:
        return {"code": "c", "state": sent["state"], **({} if iss is None else {"iss": iss})}

    world = World.usual(redirect=back)
    world.places[ASM] = issuer_document(authorization_response_iss_parameter_supported=sends)
    if taken:
        assert world.sign_in().access_token == "token-1"
    else:
        with pytest.raises(SignInFailed):
            world.sign_in()
        assert not world.bodies("/token")


@pytest.mark.hostile("O10")
@pytest.mark.requirement("AUTH-43")
def test_an_error_from_another_issuer_is_not_shown() -> None:
    lie = {"error": "pay", "error_description": "call 0900", "iss": "https://evil.example.com"}
    world = World.usual(redirect=lambda sent: {**lie, "state": sent["state"]})
    with pytest.raises(SignInFailed) as told:
        world.sign_in()
    assert "pay" not in str(told.value)
    assert "0900" not in str(told.value)


@pytest.mark.hostile("O10")
def test_an_issuers_error_is_shown_without_control_characters() -> None:
    words = "no\x1b[2Jway " + "x" * 400
    world = World.usual(redirect=lambda sent: {"error": "x", "error_description": words, "state": sent["state"]})
    with pytest.raises(SignInFailed) as told:
        world.sign_in()
    assert "\x1b" not in str(told.value)
    assert len(str(told.value)) < 350


@pytest.mark.requirement("AUTH-21")
@pytest.mark.parametrize("state", [None, "", "wrong", ("twice", "twice")])
def test_an_answer_without_our_state_is_worth_nothing(state: Any) -> None:
    world = World.usual(redirect=lambda sent: {"code": "c", **({} if state is None else {"state": state})})
    with pytest.raises(SignInFailed, match="another sign-in"):
        world.sign_in()
    assert not world.bodies("/token")


@pytest.mark.hostile("O08")
@pytest.mark.requirement("AUTH-44")
@pytest.mark.parametrize(
    ("named", "says"),
    [
        (f"{ISSUER}/", r"is of .*and 'https://as\.example\.com' was asked.*oauth\.issuer_slash"),
        (ISSUER.upper(), r"is of .*and 'https://as\.example\.com' was asked$"),
        ("https://other.example.com", r"is of .*and 'https://as\.example\.com' was asked$"),
        (None, "it names no issuer"),
        (7, "it names no issuer"),
    ],
)
def test_metadata_of_another_issuer_is_not_used(named: Any, says: str) -> None:
    world = World.usual()
    world.places[ASM] = issuer_document() | {"issuer": named}
    with pytest.raises(SignInFailed, match=says):
        world.sign_in()
    assert not world.plans


@pytest.mark.hostile("O13")
@pytest.mark.requirement("AUTH-03")
@pytest.mark.parametrize(
    ("resource", "says"),
    [
        ("https://evil.example.com/mcp", "the server's mistake"),
        ("https://mcp.example.com:444/v1/mcp", "the server's mistake"),
        ("https://mcp.example.com/v1/mc", "the server's mistake"),
        (None, "it names no resource"),
        (7, "it names no resource"),
    ],
)
def test_metadata_about_another_resource_stops_the_sign_in(resource: Any, says: str) -> None:
    world = World.usual()
    world.places[f"{PRM}/v1/mcp"] = resource_document(resource=resource)
    with pytest.raises(SignInFailed, match=says) as failed:
        world.sign_in()
    assert "None" not in str(failed.value)
    assert not world.plans


@pytest.mark.requirement("AUTH-13", "AUTH-14")
@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("HTTPS://MCP.Example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com/a#part", "https://mcp.example.com/a"),
        ("https://mcp.example.com:443/a/?x=1", "https://mcp.example.com/a/?x=1"),
    ],
)
def test_without_metadata_the_resource_is_the_servers_canonical_url(url: str, resource: str) -> None:
    base = "https://mcp.example.com"
    world = World({f"{base}/register": lambda fetch: document({"client_id": "c"}), f"{base}/token": TOKEN})
    world.sign_in(url)
    assert world.visits[0]["resource"] == world.bodies("/token")[0]["resource"] == resource


@pytest.mark.hostile("O16")
@pytest.mark.requirement("AUTH-45", "AUTH-46")
def test_credentials_of_one_issuer_are_not_sent_to_another() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in())
    other = "https://other.example.com"
    world.places |= {
        f"{PRM}/v1/mcp": resource_document(authorization_servers=[other]),
        f"{other}/.well-known/oauth-authorization-server": issuer_document(other),
        f"{other}/register": lambda fetch: document({"client_id": "client-2"}),
        f"{other}/token": TOKEN,
    }
    world.sign_in(known=known)
    assert world.visits[-1]["client_id"] == "client-2"
    warning = "this is another authorization server than last time, which was as.example.com"
    assert warning in world.plans[-1].warnings
    world.sign_in(known=known.without_grant(known.grants[0]))  # it was over by then, as it mostly is
    assert warning in world.plans[-1].warnings
    mine = known.grants[0].model_copy(update={"client": ClientRegistration(client_id="mine")})
    with pytest.raises(SignInFailed, match="belongs to"):
        world.sign_in(known=Credentials(grants=(mine,)), settings=OAuthSettings(client_id="mine"))


@pytest.mark.hostile("O09")
def test_an_off_origin_endpoint_is_named_before_it_is_used() -> None:
    world = World.usual()
    world.places[ASM] = issuer_document(token_endpoint="https://evil.example.com/token")
    world.places["https://evil.example.com/token"] = TOKEN
    world.sign_in()
    assert any("evil.example.com" in warning for warning in world.plans[0].warnings)


@pytest.mark.hostile("O14")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (document({"error": "invalid_grant", "error_description": "code-1 is used"}, 400), r"invalid_grant\): … used"),
        (document({"error": "slow_down"}), "slow_down"),
        (document(TOKEN | {"token_type": "mac"}), "of type mac"),
        (document(TOKEN | {"token_type": None}), "without a type"),
        (document(TOKEN, 201), r"refused a token \(HTTP 201\)"),
        (document({"message": "quota used up"}, 503), r"gave no token \(HTTP 503\): quota used up; try again later"),
        (document(TOKEN | {"access_token": "a\r\nX: y"}), "no header may carry"),
        (document(TOKEN | {"access_token": "x" * 20_000}), "no header may carry"),
        (document([]), "not a JSON object"),
        (HttpAnswer(200, {}, b"<html>"), "not JSON"),
        (HttpAnswer(302, {"location": "https://evil"}, b""), "HTTP 302"),
        (HttpAnswer(503, {}, b""), "try again later"),
        (Unreachable("no whole answer within 30 s"), "30 s"),
    ],
)
def test_an_invalid_token_response_is_reported_and_not_kept(answer: Any, words: str) -> None:
    world = World.usual(redirect=lambda sent: {"code": "code-1 is", "state": sent["state"]})
    world.places[f"{ISSUER}/token"] = answer
    with pytest.raises(SignInFailed, match=words) as told:
        world.sign_in()
    assert "code_verifier" not in str(told.value)


@pytest.mark.hostile("O14")
@pytest.mark.parametrize(
    ("given", "expires"),
    [("soon", None), (-1, NOW), (1e308, NOW + 86_400), ("60", NOW + 60), (True, None), (None, None), ([1], None)],
)
def test_a_lifetime_is_believed_within_reason(given: Any, expires: float | None) -> None:
    world = World.usual()
    world.places[f"{ISSUER}/token"] = TOKEN | {"expires_in": given}
    assert world.sign_in().expires_at == expires


@pytest.mark.hostile("O15")
def test_a_scope_that_shrank_is_what_was_granted() -> None:
    world = World.usual()
    world.places[f"{ISSUER}/token"] = TOKEN | {"scope": "a", "token_type": "bEaReR"}
    grant = world.sign_in(challenge='Bearer scope="a b"')
    assert (grant.asked, grant.scopes) == (("a", "b"), ("a",))
    world.places[f"{ISSUER}/token"] = TOKEN | {"scope": "a,b"}  # as some servers separate them
    assert world.sign_in(challenge='Bearer scope="a b"').scopes == ("a", "b")
