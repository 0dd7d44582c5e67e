"""``[servers.NAME]``: a server, its transport, the features it is offered, and settings of its tools."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mcphost.config.fields import (
    Alias,
    ConfigTable,
    Count,
    Distinct,
    DocumentUrl,
    Filled,
    FullPath,
    HeaderName,
    HeaderValue,
    Location,
    LogLevel,
    Name,
    Pattern,
    Price,
    Revision,
    Seconds,
    Several,
    Text,
    Url,
    VariableName,
    first_double,
    misplaced,
)
from mcphost.config.limits import Limits
from mcphost.config.policy import PolicyAction
from mcphost.protocol.limits import REQUEST_SECONDS, REQUEST_SECONDS_IN_ALL


class AssertionConfig(ConfigTable):
    """The source of a JWT, such as that by which a platform names a workload; exactly one key. It is kept nowhere."""

    file: FullPath | None = None
    """A file by its full path, read again for each token, such as a projected token of Kubernetes."""
    env: VariableName | None = None
    """An environment variable, which cannot renew what it holds."""
    command: Several[Text] = ()
    """A program and its arguments, run in ``/`` without a shell for each token; ``{audience}`` stands for the audience.
    It prints the JWT and nothing else."""
    github: bool = False
    """The identity of a job of GitHub Actions that has the permission ``id-token: write``."""

    @property
    def words(self) -> str:
        """The source in full, with references as they are."""
        return shlex.join(self.command) or self.file or (f"${self.env}" if self.env else "GitHub Actions")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = sorted(self.model_fields_set)
        if len(given) != 1:
            sentence = f"has {' and '.join(given)}; keep one" if given else "needs one of file, env, command and github"
            raise misplaced(given[-1] if given else "file", sentence)
        if given == ["command"] and not "".join(self.command[:1]).strip():
            raise misplaced("command", "command needs a program, and then its arguments, one string each")
        if given == ["github"] and not self.github:
            raise misplaced("github", "github must be true, or be left out")
        return self


class OAuthConfig(ConfigTable):
    """Settings of the sign-in to a server that wants one. Without this table everything is discovered."""

    enabled: bool = True
    """False: never sign in; a refused request is simply an error."""
    issuer: Url | None = None
    """The one authorization server that may be used, spelled as the server names it; absent: any that it names."""
    issuer_slash: Literal["exact", "ignore"] = "exact"
    """``ignore`` accepts issuers that differ by one slash at the end; the specification requires them to be equal."""
    resource: Filled | None = None
    """The exact resource that the server's metadata may name instead of its address, such as the one behind a proxy."""
    client_id: Filled | None = None
    """The client id at the authorization server, if it was registered by hand."""
    client_secret: Annotated[Filled | None, Field(repr=False)] = None
    """The secret that goes with it; a reference such as ``${keyring:NAME}``."""
    private_key: Annotated[Filled | None, Field(repr=False)] = None
    """A key in PEM that authenticates mcphost instead of a secret; a reference such as ``${file:key.pem}``."""
    client_metadata_url: DocumentUrl | None = None
    """The https address of the client metadata document, for servers that take one as ``client_id``."""
    redirect_host: Literal["127.0.0.1", "localhost"] = "127.0.0.1"
    """The host in the address that the browser comes back to."""
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The local port the browser comes back to; 0 is any free one."""
    registration: Literal["auto", "cimd", "dcr", "static"] = "auto"
    """Source of the client id: a metadata document, dynamic registration, or the ``client_id`` given here."""
    scopes: Several[Filled] = ()
    """The scopes to ask for; empty: those that the server says it needs."""
    grant: Literal["authorization_code", "client_credentials", "enterprise", "workload"] = "authorization_code"
    """A person in a browser, this program by its own secret or key, an account at an identity provider, or this
    workload by a JWT of its platform."""
    identity: Name | None = None
    """The ``[identity]`` entry of that account."""
    assertion: AssertionConfig | None = None
    """The source of that JWT; it goes with ``grant = "workload"`` and an ``issuer``."""
    audience: Filled = "issuer"
    """The audience that the JWT is asked for: ``issuer``, ``token_endpoint``, or the audience itself."""
    token_endpoint: Url | None = None
    """The address that gets the JWT, or the assertion of the identity provider, where it is on another origin than the
    issuer; compared as text."""
    dpop: Literal["auto", "require", "off"] = "auto"
    """Bind tokens to a key of this machine: if both sides show that they can, always, or never."""
    without_pkce_metadata: bool = False
    """Go on if the authorization server does not say that it checks PKCE."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.registration == "static" and self.client_id is None:
            raise misplaced("registration", 'registration = "static" needs a client_id')
        if self.registration == "cimd" and self.client_metadata_url is None:
            raise misplaced("registration", 'registration = "cimd" needs a client_metadata_url')
        if self.grant == "client_credentials" and (
            self.client_id is None or not (self.client_secret or self.private_key)
        ):
            needs = 'grant = "client_credentials" needs client_id, and client_secret or private_key'
            raise misplaced("grant", needs)
        if self.grant == "workload" and (self.issuer is None or self.assertion is None):
            raise misplaced("grant", 'grant = "workload" needs assertion, and the issuer that gets the JWT')
        return self

    @model_validator(mode="after")
    def _of_workload(self) -> Self:
        workload = self.grant == "workload"
        for key in CLIENT_KEYS if workload else WORKLOAD_KEYS:
            if key in self.model_fields_set:
                raise misplaced(key, f'{key} {"has no meaning with" if workload else "needs"} grant = "workload"')
        if self.token_endpoint is not None and self.grant not in USERS_GRANTS:
            raise misplaced("token_endpoint", 'token_endpoint needs grant = "workload" or "enterprise"')
        return self

    @model_validator(mode="after")
    def _enterprise(self) -> Self:
        if self.grant != "enterprise":
            if self.identity is not None:
                raise misplaced("identity", 'identity goes with grant = "enterprise"; set that, or remove identity')
            return self
        if self.identity is None:
            raise misplaced("grant", 'grant = "enterprise" needs identity, the name of an [identity] entry')
        if self.client_id is None and self.client_metadata_url is None:
            raise misplaced("grant", 'grant = "enterprise" needs client_id, registered at the authorization server')
        return self

    @model_validator(mode="after")
    def _belonging(self) -> Self:
        if self.client_secret is not None and self.client_id is None:
            raise misplaced("client_secret", "client_secret needs the client_id that it belongs to")
        if self.private_key is not None and self.client_id is None and self.client_metadata_url is None:
            raise misplaced("private_key", "private_key needs the client_id or client_metadata_url that it belongs to")
        return self


class SamplingConfig(ConfigTable):
    """Limits of a server's requests to the user's language model."""

    policy: PolicyAction | None = None
    """Send a request to the model at once, ask first, or refuse it; absent: ``[policy]`` decides."""
    review: Literal["ask", "allow"] | None = None
    """Ask before the server gets the model's answer, or send it at once; absent: as the request was."""
    model: Name | None = None
    """The ``[models]`` entry that always answers; absent: chosen by what the server prefers."""
    max_tokens: Count = 4_096
    """The most tokens of one answer, whatever the server asks for."""
    per_minute: Annotated[int, Field(ge=0, le=10_000)] = 10
    """The most requests in a minute; 0 refuses all."""
    budget_tokens: Count | None = None
    """The tokens, in and out, of one run of mcphost; then requests are refused until the user raises them."""
    budget_cost: Price | None = None
    """The same in money, by the prices of the models."""
    tool_rounds: Annotated[int, Field(ge=0, le=1000)] = 25
    """The most rounds of tool use by the model on behalf of one call."""
    context: Literal["none", "this-server"] = "none"
    """Context to add if the server asks for it: none, or its own earlier answers."""


PROTOCOL_HEADERS = frozenset({"mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id"})
"""Headers, besides ``Mcp-Param-*``, that a server refuses twice; in small letters."""


def is_protocol_header(name: str) -> bool:
    """True for a header that the protocol sets by itself."""
    return name.lower() in PROTOCOL_HEADERS or name.lower().startswith("mcp-param-")


WORKLOAD_KEYS = ("assertion", "audience")
CLIENT_KEYS = ("client_secret", "private_key", "client_metadata_url")
"""Keys of ``oauth`` for clients that are registered, which a workload need not be."""

LOOSENING_OAUTH_KEYS = (
    "without_pkce_metadata",
    "issuer_slash",
    "resource",
    "identity",
    "token_endpoint",
    *WORKLOAD_KEYS,
)
"""Keys of ``oauth`` that only the user may set: they let a sign-in pass that is refused otherwise."""

USERS_GRANTS = ("enterprise", "workload")
"""Grants that only the user may choose: they send out an identity that exists apart from the server."""


def users_oauth_keys(oauth: Mapping[str, object]) -> tuple[str, ...]:
    """The keys of this ``oauth`` table that only the user's own configuration may hold."""
    loosening = [key for key in LOOSENING_OAUTH_KEYS if oauth.get(key) not in (None, False, "exact")]
    return (*loosening, "grant") if oauth.get("grant") in USERS_GRANTS else tuple(loosening)


PROGRAM_KEYS = ("args", "env", "env_vars", "cwd")
ADDRESS_KEYS = ("http_headers", "env_http_headers", "bearer_token_env_var", "oauth")


class ToolConfig(ConfigTable):
    """``[servers.NAME.tools.TOOL]``: the settings of one tool."""

    approval: PolicyAction | None = None
    """Run a call at once, ask first, or refuse it; absent: ``[policy]`` decides."""
    allow_when: dict[Filled, Pattern] = Field(default_factory=dict)
    """Arguments and the patterns that their texts must match for a call to run at once, whatever ``approval`` asks."""
    timeout_sec: Seconds | None = None
    """Seconds without answer or progress before a call is given up; absent: the server's ``tool_timeout_sec``."""


class RootConfig(ConfigTable):
    """A folder the server may know of; a plain string in ``roots`` means ``{ path = … }``."""

    path: Filled
    """The folder; ``~`` and paths relative to the configuration file are understood."""
    name: Text | None = None
    """The name that the server gets."""


class CapabilitiesConfig(ConfigTable):
    """The features that this server is offered; one that is off is neither declared nor answered."""

    roots: bool = True
    """The server may ask for the folders in ``roots``."""
    sampling: bool = True
    """The server may ask for a language model's answer; takes a configured model as well."""
    elicitation: Distinct[Literal["form", "url"]] = ("form", "url")
    """The ways in which it may ask the user; an empty list allows none."""
    extensions: Distinct[Literal["io.modelcontextprotocol/tasks", "io.modelcontextprotocol/skills"]] = (
        "io.modelcontextprotocol/tasks",
        "io.modelcontextprotocol/skills",
    )
    """The extensions of the protocol that it may use; an empty list is none. They are declared from 2026-07-28 on;
    skills work with older servers, too."""


Sharing = Literal["all", "agent", "session"]
"""The agents that share one process of a server, or one session with it."""


def _root(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class ServerConfig(ConfigTable):
    """``[servers.NAME]``: a program to start (``command``) or an address to call (``url``)."""

    command: Location | None = None
    """The program, found on PATH or by its path; never a shell line."""
    args: Several[Text] = ()
    """Its arguments, one string each."""
    env: dict[VariableName, Text] = Field(default_factory=dict)
    """Variables added to its small environment."""
    env_vars: Several[VariableName] = ()
    """Names of variables passed on from mcphost's own environment, where they are set."""
    cwd: Location | None = None
    """The folder it starts in, relative to the configuration file; absent: where mcphost was started."""

    url: Url | None = None
    """The server's address, https or http."""
    http_headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    """Headers sent with every request."""
    env_http_headers: dict[HeaderName, VariableName] = Field(default_factory=dict)
    """Headers whose values are taken from the environment variables named here."""
    bearer_token_env_var: VariableName | None = None
    """The environment variable with the token for ``Authorization: Bearer``."""

    transport: Literal["auto", "stdio", "http", "sse"] = "auto"
    """The wire; auto: stdio for a command, for a URL Streamable HTTP and then the older SSE."""
    protocol: Literal["auto", "legacy", "modern"] = "auto"
    """The protocol revisions: those with the initialize handshake (legacy), those without, from 2026-07-28 on (modern),
    or whichever the server speaks (auto: it is asked)."""
    minimum_version: Revision | None = None
    """The oldest protocol revision accepted; an older offer ends the connection."""
    required_capabilities: Distinct[Filled] = ()
    """Features that the server must offer (such as ``tools``), or the connection ends."""
    start: Literal["eager", "lazy", "manual"] = "eager"
    """Connect when mcphost starts, at first use, or only when the user asks for it."""
    share: Sharing | None = None
    """The agents that ``mcphost serve`` lets use one process or session: all, one agent in all its sessions, or one
    session; absent: all where the server speaks a revision without handshake, since it keeps nothing of a conversation,
    else one session."""
    idle_stop: Seconds = 600.0
    """Seconds without a use after which what runs for one agent or session ends; the next use starts it again."""
    startup_timeout_sec: Seconds = 30.0
    """Seconds for the handshake after the start, and as many again for the list of tools."""
    tool_timeout_sec: Seconds = REQUEST_SECONDS
    """Seconds a request may go without answer; each sign of progress starts them again."""
    tool_timeout_max_sec: Seconds = REQUEST_SECONDS_IN_ALL
    """Seconds a request may take in all, progress or not, without the time in which the user is asked.

    A longer `timeout_sec` of a tool, or ``--timeout``, raises it.
    """
    ping_interval_sec: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """Seconds between pings of an idle connection; 0 is never."""

    enabled: bool = True
    """False: the entry is ignored."""
    enabled_tools: Several[Filled] = ("*",)
    """The tools that are offered to models and on screen, as patterns (``*``, ``?``, ``[abc]``)."""
    disabled_tools: Several[Filled] = ()
    """The tools that are not, as patterns; stronger than ``enabled_tools``."""
    trust_hints: bool = False
    """The server's claims about its tools (read-only, destructive) may spare a question."""
    roots: Several[Annotated[RootConfig, BeforeValidator(_root, json_schema_input_type=Text | RootConfig)]] = ()
    """The folders the server may know of."""
    log_level: LogLevel | None = None
    """The least severe log message the server should send; absent: the server decides."""

    alias: Alias | None = None
    """The start of its tools' names for agents that ``mcphost serve`` gives several servers; absent: from its name."""

    capabilities: CapabilitiesConfig = CapabilitiesConfig.model_construct()
    """The features that the server is offered."""
    sampling: SamplingConfig = SamplingConfig.model_construct()
    """The limits of its requests to a language model."""
    oauth: OAuthConfig = OAuthConfig.model_construct()
    """The sign-in."""
    tools: dict[Filled, ToolConfig] = Field(default_factory=dict)
    """Single tools, by their exact name."""
    limits: Limits = Limits.model_construct()
    """Only what differs from ``[limits]``; read through ``Config.limits_for``."""

    def enables(self, tool: str) -> bool:
        """True if the user wants this tool to be seen at all."""
        return _any_matches(self.enabled_tools, tool) and not _any_matches(self.disabled_tools, tool)

    @property
    def identity(self) -> str:
        """The program or address of the server: command line or URL, folder, names of its variables and headers.

        Approvals and shared folders are bound to it. References are not resolved.
        """
        given = {*self.env, *self.env_vars, *self.http_headers, *self.env_http_headers}
        return program_words(self.url or (self.command or "", *self.args), self.cwd, given)

    @property
    def signs_in(self) -> bool:
        """True if mcphost signs its requests; false if the entry has an Authorization header of its own."""
        headers = {name.lower() for name in (*self.http_headers, *self.env_http_headers)}
        own = self.bearer_token_env_var is not None or "authorization" in headers
        return self.url is not None and self.oauth.enabled and not own

    @model_validator(mode="after")
    def _one_wire(self) -> Self:
        if (self.command is None) == (self.url is None):
            _either(self.url is not None)
        kind, foreign = ("url", PROGRAM_KEYS) if self.command is None else ("command", ADDRESS_KEYS)
        for key in foreign:
            if key in self.model_fields_set:
                raise misplaced(key, f"{key} has no meaning for a server with a {kind}; remove one of them")
        if self.transport not in (("auto", "http", "sse") if kind == "url" else ("auto", "stdio")):
            raise misplaced("transport", f'transport = "{self.transport}" does not go with a {kind}')
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.protocol == "modern" and self.transport == "sse":
            raise misplaced("protocol", 'protocol = "modern" does not go with transport = "sse", which is older')
        if self.tool_timeout_sec > self.tool_timeout_max_sec:
            raise misplaced(
                "tool_timeout_sec", "tool_timeout_sec is above tool_timeout_max_sec; raise that one as well"
            )
        bearer = ["authorization"] if self.bearer_token_env_var else []
        headers = [name.lower() for name in (*self.http_headers, *self.env_http_headers)] + bearer
        if double := first_double(headers):
            raise misplaced("http_headers", f"the header {double} is set twice; keep one")
        for key in ("http_headers", "env_http_headers"):
            for name in getattr(self, key):
                if is_protocol_header(name):
                    raise misplaced(key, f"the header {name} is the protocol's own, and mcphost sends it; remove it")
        return self


class GivenServer(ServerConfig):
    """A server given on the command line, which no file names."""


class ComparedServer(GivenServer):
    """A copy of a server for the time of a comparison."""

    entry: str = ""
    """Name of the entry this was copied from, whose sign-in it shares; empty for a server from the command line."""


class RecordedServer(GivenServer):
    """A recording that takes the place of its server, in one run."""

    recording: str = ""
    """The server, the time and the number of requests, in words."""


def _either(both: bool) -> None:
    if both:
        raise misplaced("url", "has both command and url; keep the one that this server is")
    raise misplaced("command", 'needs command = "…" (a program) or url = "https://…" (an address)')


def program_words(runs: str | tuple[str, ...], folder: str | None, given: Collection[str]) -> str:
    """An address or the words of a command, with the folder and the names of variables or headers."""
    line = runs if isinstance(runs, str) else _command_line(runs)
    more = [f"in {shlex.quote(folder)}"] if folder else []
    more += [f"given {shlex.join(sorted(given))}"] if given else []
    return f"{line} ({', '.join(more)})" if more else line


@lru_cache  # asked for at each call of a tool
def _command_line(words: tuple[str, ...]) -> str:
    return shlex.join(words)  # quoted, so that no argument passes for the rest


def _any_matches(patterns: tuple[str, ...], tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
