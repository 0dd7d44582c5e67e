"""Server and model entries with all references replaced, as transports and providers need them.

They hold secrets: they are made when needed and not kept, and no secret shows in a ``repr``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import NamedTuple

from mcphost.config.fields import entry_of, reason_against_document, reason_against_url
from mcphost.config.identities import IdentityConfig
from mcphost.config.models import Config, ModelConfig
from mcphost.config.servers import AssertionConfig, OAuthConfig, ServerConfig
from mcphost.config.values import Values
from mcphost.errors import ConfigError, UnknownName
from mcphost.lazy_dataclass import dataclass
from mcphost.redaction import looks_secret, named_secrets, secret_parameters

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ResolvedRoot:
    """A root of a server: an absolute path, and its name."""

    path: Path
    name: str | None = None


class ResolvedIdentity(NamedTuple):
    """One identity, ready to sign in with."""

    name: str
    settings: IdentityConfig


@dataclass(frozen=True, slots=True)
class ResolvedServer:
    """One server, ready to start. Either ``command`` or ``url`` is set.

    ``env`` is added to the child's small environment; ``headers`` include those from variables and the bearer token.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthConfig = field(default_factory=OAuthConfig.model_construct)
    roots: tuple[ResolvedRoot, ...] = ()
    identity: ResolvedIdentity | None = None


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """One language model, ready for use."""

    name: str
    provider: str
    model: str | None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


def resolve_server(config: Config, values: Values, name: str) -> ResolvedServer:
    """Return the entry ``name`` with its references replaced.

    Blocks on the keychain: call it in a thread. Raises UnresolvedReference or ConfigError, which name the field, or
    UnknownName.
    """
    if (server := config.servers.get(name)) is None:
        raise UnknownName(f"there is no server {name!a} in the configuration")
    found = _Resolution(values.beside(config.path), f"servers.{entry_of(name)}").server(name, server)
    identity = server.oauth.identity
    return found if identity is None else replace(found, identity=resolve_identity(config, values, identity))


class ResolvedProgram(NamedTuple):
    """The command or the address of an entry; its variables and headers are not looked up."""

    runs: str | tuple[str, ...]
    """The address, or the words of the command."""
    folder: Path | None


def resolve_program(config: Config, values: Values, name: str) -> ResolvedProgram:
    """Return what the entry ``name`` runs or calls, with references replaced. Raises as ``resolve_server``."""
    if (server := config.servers.get(name)) is None:
        raise UnknownName(f"there is no server {name!a} in the configuration")
    return _Resolution(values.beside(config.path), f"servers.{entry_of(name)}").program(server)


def resolve_roots(config: Config, values: Values, name: str) -> tuple[ResolvedRoot, ...]:
    """Return the roots of the entry ``name``; see ``resolve_server``."""
    if (server := config.servers.get(name)) is None:
        raise UnknownName(f"there is no server {name!a} in the configuration")
    return tuple(_Resolution(values.beside(config.path), f"servers.{entry_of(name)}").roots(server))


def resolve_identity(config: Config, values: Values, name: str) -> ResolvedIdentity:
    """Return the identity ``name`` with its references replaced; see ``resolve_server``."""
    if (identity := config.identity.get(name)) is None:
        raise ConfigError(f"there is no [identity.{name}] in the configuration that can be used")
    return ResolvedIdentity(name, _Resolution(values.beside(config.path), f"identity.{name}").identity(identity))


def resolve_model(config: Config, values: Values, name: str) -> ResolvedModel:
    """Return the model ``name`` with its references replaced; see ``resolve_server``."""
    if (model := config.models.get(name)) is None:
        raise UnknownName(f"there is no model {name!a} in the configuration")
    return _Resolution(values.beside(config.path), f"models.{name}").model(name, model)


class _Resolution:
    """Resolves the fields of one entry, located at ``where``."""

    def __init__(self, values: Values, where: str) -> None:
        self._values, self._where = values, where

    def server(self, name: str, server: ServerConfig) -> ResolvedServer:
        return ResolvedServer(
            name=name,
            command=self._command(server.command),
            args=self._arguments(server.args, "args"),
            env=self._environment(server),
            cwd=self._folder(server),
            url=self._url(server.url, "url"),
            headers=self._headers(server),
            oauth=self._oauth(server.oauth),
            roots=tuple(self.roots(server)),
        )

    def program(self, server: ServerConfig) -> ResolvedProgram:
        url, command = self._url(server.url, "url"), self._command(server.command) or ""
        return ResolvedProgram(url or (command, *self._arguments(server.args, "args")), self._folder(server))

    def _folder(self, server: ServerConfig) -> Path | None:
        return None if server.cwd is None else self._values.path(server.cwd, f"{self._where}.cwd")

    def model(self, name: str, model: ModelConfig) -> ResolvedModel:
        return ResolvedModel(
            name=name,
            provider=model.provider,
            model=self._optional(model.model, "model"),
            base_url=self._url(model.base_url, "base_url"),
            api_key=self._header_safe(self._optional(model.api_key, "api_key", secret=True), "api_key"),
        )

    def _optional(self, text: str | None, key: str, *, secret: bool = False) -> str | None:
        return None if text is None else self._values.resolve(text, f"{self._where}.{key}", secret=secret)

    def _command(self, text: str | None) -> str | None:
        command = self._optional(text, "command")
        return command and os.path.expanduser(command)

    def _arguments(self, args: tuple[str, ...], key: str) -> tuple[str, ...]:
        resolved, previous = [], ""
        for index, text in enumerate(args):
            # --token VALUE and --token=VALUE: other programs show arguments, we do not.
            option, equals, _ = text.partition("=")
            secret = _is_secret_option(previous) or (bool(equals) and _is_secret_option(option))
            value = self._values.resolve(text, f"{self._where}.{key}[{index}]", secret=secret)
            if secret and equals:
                self._values.remember(value.partition("=")[2])
            for each in (*named_secrets(value), *secret_parameters(value)):
                self._values.remember(each)
            resolved.append(value)
            previous = "" if equals else text
        return tuple(resolved)

    def _environment(self, server: ServerConfig) -> dict[str, str]:
        passed = {name: self._values.passed_on(name) for name in server.env_vars}
        env = {name: value for name, value in passed.items() if value is not None}
        for name, text in server.env.items():
            env[name] = self._values.resolve(text, f"{self._where}.env.{name}")
        return env

    def _headers(self, server: ServerConfig) -> dict[str, str]:
        headers = {}
        for name, text in server.http_headers.items():
            headers[name] = self._optional(text, f"http_headers.{name}") or ""
        for name, variable in server.env_http_headers.items():
            where = f"{self._where}.env_http_headers.{name}"
            headers[name] = self._values.variable(variable, where, secret=True)
        if server.bearer_token_env_var:
            where = f"{self._where}.bearer_token_env_var"
            headers["Authorization"] = (
                f"Bearer {self._values.variable(server.bearer_token_env_var, where, secret=True)}"
            )
        for name, value in headers.items():
            self._header_safe(value, f"header {name}")
        return headers

    def _oauth(self, oauth: OAuthConfig) -> OAuthConfig:
        resolved = {
            **self._client(oauth, "oauth."),
            "resource": self._optional(oauth.resource, "oauth.resource"),
            "client_metadata_url": self._document_url(oauth.client_metadata_url),
            "assertion": self._assertion(oauth.assertion, "oauth.assertion"),
            "audience": self._optional(oauth.audience, "oauth.audience"),
            "token_endpoint": self._url(oauth.token_endpoint, "oauth.token_endpoint"),
        }
        return oauth.model_copy(update={name: value for name, value in resolved.items() if value})

    def identity(self, identity: IdentityConfig) -> IdentityConfig:
        resolved = {**self._client(identity), "id_token": self._assertion(identity.id_token, "id_token")}
        return identity.model_copy(update={name: value for name, value in resolved.items() if value})

    def _client(self, table: OAuthConfig | IdentityConfig, within: str = "") -> dict[str, object]:
        """The issuer, the client there and its scopes, resolved."""
        return {
            "issuer": self._url(table.issuer, f"{within}issuer"),
            "client_id": self._optional(table.client_id, f"{within}client_id"),
            "client_secret": self._optional(table.client_secret, f"{within}client_secret", secret=True),
            "private_key": self._private_key(table.private_key, f"{within}private_key"),
            "scopes": tuple(
                self._values.resolve(scope, f"{self._where}.{within}scopes[{index}]")
                for index, scope in enumerate(table.scopes)
            ),
        }

    def _assertion(self, source: AssertionConfig | None, key: str) -> AssertionConfig | None:
        if source is None:
            return None
        command = self._arguments(source.command, f"{key}.command")
        if command:
            program = os.path.expanduser(command[0])
            command = (self._full_path(program, f"{key}.command") if os.sep in program else program, *command[1:])
        file = self._optional(source.file, f"{key}.file")
        if file is not None:
            file = self._full_path(os.path.expanduser(file), f"{key}.file")
        return source.model_copy(update={"file": file, "command": command})

    def _full_path(self, path: str, key: str) -> str:
        # A relative path would lead into the folder of whichever project mcphost is started in.
        if not os.path.isabs(path):
            raise ConfigError(f"{self._where}.{key}: must be a full path, from / or ~ on")
        return path

    def _private_key(self, text: str | None, where: str) -> str | None:
        key = self._optional(text, where, secret=True)
        if key and not (key.lstrip().startswith("-----BEGIN ") and "PRIVATE KEY-----" in key):
            raise ConfigError(f"{self._where}.{where}: is not a private key in PEM (-----BEGIN PRIVATE KEY-----)")
        return key

    def _document_url(self, text: str | None) -> str | None:
        url = self._optional(text, "oauth.client_metadata_url")
        if url and (reason := reason_against_document(url)):
            raise ConfigError(f"{self._where}.oauth.client_metadata_url: {reason}")
        return url

    def _header_safe(self, value: str | None, key: str) -> str | None:
        if value is not None and (_CONTROLS.search(value) or value != value.strip()):
            raise ConfigError(
                f"{self._where}: the value of {key} has a line break, control character or space around it"
            )
        if value is not None and not value.isascii():
            raise ConfigError(
                f"{self._where}: the value of {key} has a character beyond ASCII, which no header carries"
            )
        return value

    def _url(self, text: str | None, key: str) -> str | None:
        url = self._optional(text, key)
        if url is None:
            return None
        if reason := reason_against_url(url):
            raise ConfigError(f"{self._where}.{key}: {reason}")
        for value in secret_parameters(url):
            self._values.remember(value)
        return url

    def roots(self, server: ServerConfig) -> list[ResolvedRoot]:
        return [
            ResolvedRoot(
                self._values.path(root.path, f"{self._where}.roots[{index}].path"),
                self._optional(root.name, f"roots[{index}].name"),
            )
            for index, root in enumerate(server.roots)
        ]


def _is_secret_option(text: str) -> bool:
    return text.startswith("-") and looks_secret(text)
