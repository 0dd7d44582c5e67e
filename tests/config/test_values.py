"""References, what they are worth, and what is never shown of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config, ModelConfig, OAuthConfig, RootConfig, ServerConfig, Values, parse, references
from mcphost.config.resolved import resolve_model, resolve_server
from mcphost.errors import ConfigError, UnknownName, UnresolvedReference
from mcphost.redaction import MASK, secrets_in

ENV = {"SET": "value", "EMPTY": "", "API_TOKEN": "tok-12345678", "CRLF": "a\r\nX: b", "HOST": "h.example"}
ENV["LATIN"] = "caf\udce9"  # a byte that is not UTF-8, as os.environ has it
KEYS = {"db": "key-abcdefgh", "void": ""}


@pytest.fixture
def values(tmp_path: Path) -> Values:
    (tmp_path / "secret.txt").write_text("file-abcdefgh\n")
    (tmp_path / "void.txt").write_text("\n")
    return Values(ENV, KEYS.get, tmp_path)


def test_a_file_is_looked_for_beside_the_configuration_that_names_it(tmp_path: Path, values: Values) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret.txt").write_text("other-abcdefgh\n")
    text = '[servers.a]\ncommand = "x"\nenv = { TOKEN = "${file:secret.txt}" }'
    before, after = parse(text, tmp_path / "mcphost.toml").config, parse(text, other / "mcphost.toml").config
    assert resolve_server(before, values, "a").env == {"TOKEN": "file-abcdefgh"}
    assert resolve_server(after, values, "a").env == {"TOKEN": "other-abcdefgh"}
    assert values.mask("file-abcdefgh other-abcdefgh") == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain $ and $$ and {x}", "plain $ and $$ and {x}"),
        ("a${SET}b${SET}", "avaluebvalue"),
        ("${UNSET:-x:-y}", "x:-y"),
        ("${EMPTY:-x}", "x"),
        ("${UNSET:-}", ""),
        ("$${SET} ${SET}", "${SET} value"),
        ("${keyring:db}", "key-abcdefgh"),
        ("${file:secret.txt}", "file-abcdefgh"),
    ],
)
def test_a_reference_becomes_its_value(values: Values, text: str, result: str) -> None:
    assert values.resolve(text, "servers.a.args[0]") == result


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${UNSET}", "${UNSET} is not set; set the environment variable UNSET"),
        ("${EMPTY}", "is not set"),
        ("${keyring:absent}", "to store it there: mcphost secret set absent"),
        ("${keyring:void}", "is not in the keychain"),
        ("${file:absent.txt}", "is not there; create "),
        ("${file:void.txt}", "is empty"),
        ("${file:.}", "not a regular file"),
        ("${file:/dev/zero}", "not a regular file"),
        ("${", "never closed"),
        ("${A:-${B}}", "may not hold another reference"),
        ("${env:A}", "write ${A}"),
        ("${input:A}", "write ${A}"),
        ("${pa55word!}", "does not hold a reference"),
    ],
)
def test_an_unset_reference_names_its_field_with_advice(values: Values, text: str, words: str) -> None:
    with pytest.raises(UnresolvedReference) as caught:
        values.resolve(f"x{text}", "servers.db.env.DSN")
    assert str(caught.value).startswith("servers.db.env.DSN: ")
    assert words in str(caught.value)
    assert "pa55word" not in str(caught.value)


def test_without_a_keychain_its_references_say_so() -> None:
    with pytest.raises(UnresolvedReference, match="this machine lacks"):
        Values({}).resolve("${keyring:db}", "x")


def test_references_are_listed_with_their_origin() -> None:
    listed = references("${A} $${B} ${C:-d} ${keyring:e} ${file:~/f}")
    assert [(one.text, one.origin) for one in listed] == [
        ("${A}", "environment variable A"),
        ("${C:-d}", "environment variable C"),
        ("${keyring:e}", "keyring entry e"),
        ("${file:~/f}", "file ~/f"),
    ]


@pytest.mark.hostile("C10")
@pytest.mark.parametrize(
    ("text", "field", "shown"),
    [
        ("${SET}", "servers.a.args[0]", "value"),
        ("${SET}-long", "servers.a.env.MODE", "value-long"),
        ("${SET}-long", "servers.a.env.DB_PASSWORD", MASK),
        ("literal-key", "servers.a.http_headers.X-Key", MASK),
        ("${API_TOKEN}", "servers.a.args[0]", MASK),
        ("x ${API_TOKEN}", "servers.a.args[0]", f"x {MASK}"),
        ("${keyring:db}", "servers.a.args[0]", MASK),
        ("${file:secret.txt}", "servers.a.args[0]", MASK),
        ("short", "servers.a.env.TOKEN", "short"),
        ("${LATIN}-long", "servers.a.env.DB_PASSWORD", MASK),
    ],
)
def test_a_resolved_secret_is_masked(values: Values, text: str, field: str, shown: str) -> None:
    assert values.mask(values.resolve(text, field)) == shown


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        *((value, []) for value in ("true", "8080", "production", "eu-central-1", "en_US.UTF-8", "2025-11-25")),
        *(
            (value, [])
            for value in ("/home/me/project-12345678", "~/src1/src2/src3", "/usr/bin:/bin", "127.0.0.1:8080")
        ),
        *((value, []) for value in ("db1.internal.example.com:5432", "https://api.example.com/v1", "abc12345678")),
        *((value, [value]) for value in ("tok-12345678", "0123456789ab", "ghp_abcdefgh1234", "abc12/34567+89==")),
        *((value, [value]) for value in ("550e8400-e29b-41d4-a716-446655440000", "x" * 20)),
        ("Bearer abc123def456", ["abc123def456"]),
        ('{"id": 7, "k": "abc123def456"}', ["abc123def456"]),
        ("Server=db;Password=hunter22", ["hunter22"]),
        ("postgres://sa:hunter22@db/x", ["hunter22"]),
        ("https://h.example/x?token=hunter22&page=2", ["hunter22"]),
        ("https://hooks.example.com/T00000000/abcdefghijklmnopqrst", ["abcdefghijklmnopqrst"]),
    ],
)
def test_a_value_shaped_like_a_secret_is_masked_under_any_name(value: str, secrets: list[str]) -> None:
    assert [each for each in secrets_in(value) if each] == secrets
    masked = value
    for secret in secrets:
        masked = masked.replace(secret, MASK)
    for passed_on in (True, False):
        values = Values({"PLAIN": value})
        given = values.passed_on("PLAIN") if passed_on else values.resolve("${PLAIN}", "servers.a.env.MODE")
        assert given == value
        assert values.mask(value) == masked


@pytest.mark.parametrize("written", ["Bearer written-out-7", "Bearer ${SET}-out-7"])
def test_a_token_in_a_configured_header_is_masked(values: Values, written: str) -> None:
    server = ServerConfig(url="https://h.example/mcp", http_headers={"Authorization": written})
    sent = resolve_server(Config(servers={"web": server}), values, "web").headers["Authorization"]
    assert sent.endswith("-out-7")
    assert values.mask(f"it said {sent.split()[1]}") == f"it said {MASK}"


def test_a_variable_named_like_a_secret_is_masked_under_any_key() -> None:
    values = Values({"API_TOKEN": "hunter22", "PLAIN": "lighthouse"})
    assert values.resolve("${API_TOKEN} at the ${PLAIN}", "servers.a.env.NOTE") == "hunter22 at the lighthouse"
    assert values.mask("hunter22 at the lighthouse") == f"{MASK} at the lighthouse"


def test_every_value_of_a_header_from_a_variable_is_masked() -> None:
    values = Values({"TEAM": "lighthouse", "FLAG": "true"})
    server = ServerConfig(url="https://h", env_http_headers={"X-Team": "TEAM", "X-Flag": "FLAG"})
    assert resolve_server(_config(a=server), values, "a").headers == {"X-Team": "lighthouse", "X-Flag": "true"}
    assert values.mask("lighthouse true") == f"{MASK} true"


@pytest.mark.hostile("C10")
def test_a_secret_is_masked_in_every_form_it_travels_in() -> None:
    values = Values({})
    for secret in (
        'Bearer ab"c/d efgh'.replace(" e", "e"),
        "abcdefgh",
        "abcdefghijkl",
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n",
    ):
        values.remember(secret)
    text = values.mask('{"ab\\"c/defgh"} ab%22c%2Fdefgh ab"c/defgh abcdefghijkl MIIEvQIBADANBgkqhkiG Bearer')
    assert re.sub(f"{MASK}+", "*", text) == '{"*"} * * * * Bearer'


def _config(**servers: ServerConfig) -> Config:
    return Config(servers=servers)


def _signing_in(**oauth: Any) -> ServerConfig:
    return ServerConfig(url="https://h", oauth=OAuthConfig(**oauth))


def test_a_program_is_resolved_field_by_field(values: Values, tmp_path: Path, isolated: Path) -> None:
    server = ServerConfig(
        command="~/bin/${SET}",
        args=("--api-key", "plain-key-1", "--token=plain-key-2", "${SET}"),
        env={"MODE": "${SET}", "SET": "own"},
        env_vars=("SET", "UNSET", "API_TOKEN"),
        cwd="sub",
        roots=(RootConfig(path="~/r", name="${SET}"), RootConfig(path="/abs")),
    )
    resolved = resolve_server(_config(a=server), values, "a")
    assert resolved.command == f"{isolated}/bin/value"
    assert resolved.args == ("--api-key", "plain-key-1", "--token=plain-key-2", "value")
    assert resolved.env == {"MODE": "value", "SET": "own", "API_TOKEN": "tok-12345678"}
    assert resolved.cwd == tmp_path / "sub"
    assert [(root.path, root.name) for root in resolved.roots] == [(isolated / "r", "value"), (Path("/abs"), None)]
    assert values.mask(" ".join(resolved.args)) == f"--api-key {MASK} {MASK} value"


@pytest.mark.parametrize(
    ("argument", "masked"),
    [
        ("API_TOKEN=plain-12", f"API_TOKEN={MASK}"),
        ("--env=DB_PASSWORD=plain-12", f"--env=DB_PASSWORD={MASK}"),
        ("Authorization: Bearer plain-12", f"Authorization: {MASK}"),
        ("Authorization:plain-12", f"Authorization:{MASK}"),
        ("https://h.example/mcp?page=2&api_key=plain-12", f"https://h.example/mcp?page=2&api_key={MASK}"),
        ("--header=X-Api-Key: plain-12", f"--header=X-Api-Key: {MASK}"),
        ("--env=MODE=fast,API_TOKEN=plain-12,TIER=production", f"--env=MODE=fast,API_TOKEN={MASK},TIER=production"),
        ("API_TOKEN=plain-12 my-server --fast", f"API_TOKEN={MASK} my-server --fast"),
        ("--token=${SET}-12", MASK),
        ("--Smtp:Password=plain-12", MASK),
        ("--set=mode=fast", "--set=mode=fast"),
        ("auth:latest", "auth:latest"),
        ("--volume=private-data:/workspace", "--volume=private-data:/workspace"),
        ("https://h.example:8080/token", "https://h.example:8080/token"),
        ("--author=ada-lovelace", "--author=ada-lovelace"),
        ("API_TOKEN=", "API_TOKEN="),
    ],
)
def test_an_argument_after_a_secrets_name_is_masked(values: Values, argument: str, masked: str) -> None:
    server = ServerConfig(command="docker", args=("run", "-e", argument, "image"))
    args = resolve_server(_config(a=server), values, "a").args
    assert values.mask(args[2]) == masked


@pytest.mark.hostile("C10")
@pytest.mark.requirement("AUTH-25", "TRANS-STDIO-13")
def test_an_address_is_resolved_and_shows_no_secret(values: Values) -> None:
    text = """[servers.a]
url = "https://${HOST}/mcp?api_key=in-the-url"
http_headers = { X-Plain = "${SET}", X-Auth = "header-secret" }
env_http_headers = { X-Key = "SET" }
bearer_token_env_var = "API_TOKEN"
oauth = { client_id = "${SET}", client_secret = "${keyring:db}", scopes = ["${SET}"], redirect_port = 7 }
"""
    resolved = resolve_server(parse(text).config, values, "a")
    assert resolved.url == "https://h.example/mcp?api_key=in-the-url"
    assert resolved.headers == {
        "X-Plain": "value",
        "X-Auth": "header-secret",
        "X-Key": "value",
        "Authorization": "Bearer tok-12345678",
    }
    oauth = resolved.oauth
    assert (oauth.client_id, oauth.client_secret, oauth.scopes) == ("value", "key-abcdefgh", ("value",))
    assert oauth == OAuthConfig(client_id="value", client_secret="key-abcdefgh", scopes=("value",), redirect_port=7)
    canaries = ("tok-12345678", "header-secret", "key-abcdefgh", "in-the-url")
    assert not any(canary in repr(resolved) for canary in canaries)
    masked = values.mask(f"{resolved.headers} {resolved.url} {oauth.client_secret}")
    assert not any(canary in masked for canary in canaries)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (ServerConfig(url="${SET}"), "servers.a.url: must start with https://"),
        (ServerConfig(url="https://${CRLF}/"), "servers.a.url: holds a space or a control"),
        (ServerConfig(url="https://h", http_headers={"X": "${CRLF}"}), "header X has a line break"),
        (ServerConfig(url="https://h", http_headers={"X": "${LATIN}"}), "header X has a character beyond ASCII"),
        (ServerConfig(url="https://h", bearer_token_env_var="LATIN"), "Authorization has a character beyond ASCII"),
        (
            ServerConfig(url="https://h", env_http_headers={"X": "UNSET"}),
            "servers.a.env_http_headers.X: UNSET is not set",
        ),
        (ServerConfig(url="https://h", bearer_token_env_var="EMPTY"), "bearer_token_env_var: EMPTY is not set"),
        (_signing_in(client_id="x", client_secret="${UNSET}"), "servers.a.oauth.client_secret: ${UNSET} is not set"),
        (_signing_in(client_id="x", private_key="${SET}"), "servers.a.oauth.private_key: is not a private key in PEM"),
        (_signing_in(client_metadata_url="${SET}"), "servers.a.oauth.client_metadata_url: must start with https://"),
        (_signing_in(issuer="${SET}"), "servers.a.oauth.issuer: must start with https://"),
        (_signing_in(client_metadata_url="https://${HOST}"), "servers.a.oauth.client_metadata_url: must be https and"),
        (_signing_in(scopes=("a", "${UNSET}")), "servers.a.oauth.scopes[1]: ${UNSET} is not set"),
    ],
)
def test_a_value_that_cannot_be_sent_stops_the_server(values: Values, server: ServerConfig, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_server(_config(a=server), values, "a")
    assert words in str(caught.value)


def test_a_model_is_resolved_and_its_key_masked(values: Values) -> None:
    model = ModelConfig(provider="openai", model="${SET}", base_url="https://${HOST}/v1", api_key="literal-key")
    resolved = resolve_model(Config(models={"m": model}), values, "m")
    assert (resolved.model, resolved.base_url, resolved.api_key) == ("value", "https://h.example/v1", "literal-key")
    assert "literal-key" not in repr(resolved) + values.mask(str(resolved.api_key))


@pytest.mark.parametrize("resolve", [resolve_server, resolve_model])
def test_an_unknown_name_is_refused(values: Values, resolve: Callable[[Config, Values, str], object]) -> None:
    with pytest.raises(UnknownName, match="'b'"):
        resolve(Config(), values, "b")


def test_an_identity_is_resolved_with_the_server_that_names_it() -> None:
    config = parse(
        '[servers.a]\nurl = "https://h"\noauth = { grant = "enterprise", identity = "corp", client_id = "x" }\n'
        '[identity.corp]\nissuer = "https://${HOST}"\nclient_id = "y"\nclient_secret = "${SECRET}"\n'
    ).config
    values = Values({"HOST": "idp.example", "SECRET": "s3cret-value"})
    identity = resolve_server(config, values, "a").identity
    assert identity is not None
    assert (identity.name, identity.settings.issuer) == ("corp", "https://idp.example")
    assert values.mask(f"<{identity.settings.client_secret}>") == f"<{MASK}>"
    assert "s3cret-value" not in repr(identity)
    with pytest.raises(ConfigError, match=r"identity\.corp\.client_secret: \$\{SECRET\} is not set"):
        resolve_server(config, Values({"HOST": "idp.example"}), "a")


def _workload(assertion: dict[str, Any]) -> Config:
    oauth = {"grant": "workload", "issuer": "https://as.example", "assertion": assertion}
    return Config.model_validate({"servers": {"a": {"url": "https://h", "oauth": oauth}}}, strict=False)


@pytest.mark.parametrize("assertion", [{"file": "${DIR}/token"}, {"command": ["./mint"]}, {"command": ["bin/mint"]}])
def test_the_source_of_a_jwt_is_named_by_its_full_path(assertion: dict[str, Any]) -> None:
    """A relative one would lead into the folder of any project."""
    with pytest.raises(ConfigError, match=r"servers\.a\.oauth\.assertion\.\w+: must be a full path, from / or ~ on"):
        resolve_server(_workload(assertion), Values({"DIR": "keys"}), "a")


def test_the_source_of_a_jwt_may_hold_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    values = Values({"DIR": "/run", "KEY": "s3cret-012345"})
    file = resolve_server(_workload({"file": "${DIR}/token"}), values, "a").oauth.assertion
    words = {"command": ["~/mint", "--key", "${KEY}", "{audience}"]}
    command = resolve_server(_workload(words), values, "a").oauth.assertion
    assert file is not None
    assert command is not None
    assert (file.file, command.command) == ("/run/token", ("/home/me/mint", "--key", "s3cret-012345", "{audience}"))
    assert values.mask("with s3cret-012345") == "with •••"
