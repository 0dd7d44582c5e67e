"""Writes servers of mcphost's configuration as another host's document.

Secrets stay out of it: a keychain item, a file or a literal that looks secret becomes a variable that the host reads,
and the notes say what to set. What the host cannot express is left out, and noted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcphost.config import Reference, ServerConfig
from mcphost.imports.dialects.dialect import Wire
from mcphost.imports.documents import write_document
from mcphost.imports.hosts import KnownHost
from mcphost.imports.inputs import input_id
from mcphost.imports.secrets import find_secrets, with_references
from mcphost.imports.variables import pieces_of, taken_for_variables
from mcphost.lazy_dataclass import dataclass

OURS: Final = frozenset({
    "capabilities", "limits", "log_level", "minimum_version", "ping_interval_sec", "protocol", "required_capabilities",
    "roots", "sampling", "tool_timeout_max_sec", "tools", "trust_hints",
})  # fmt: skip
"""Keys that no other host has, but for ``start``, which an import sets by itself."""

_NO_VARIABLE: Final = re.compile(r"[^A-Z0-9_]+")
_NO_VARIABLES: Final = "left out: {} has no variables; set it there, or use --inline-secrets"
_UNESCAPED: Final = re.compile(r"\[([*?\[])\]")

Resolve = Callable[[Reference, str], str]
"""Returns the value of a reference in the field of this dotted key. Raises ConfigError."""


@dataclass(frozen=True, slots=True)
class ExportNote:
    """A value that could not be written unchanged. ``reason`` is a clause; ``key`` is empty for the whole server."""

    server: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.server}{f'.{self.key}' if self.key else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ExportedDocument:
    """A host's document with some servers."""

    text: str
    notes: tuple[ExportNote, ...] = ()


class _ServerLeftOut(Exception):
    """The server cannot be written for this host; ``str()`` says why."""


def export_servers(
    host: KnownHost, servers: Mapping[str, ServerConfig], folder: Path, resolve: Resolve | None = None
) -> ExportedDocument:
    """Write ``servers`` as the host's document.

    ``folder`` is that of the configuration file, where relative paths start. With ``resolve`` secrets, and variables
    that the host could not read, are written as their values. Raises ConfigError where ``resolve`` does.
    """
    writer = _DocumentWriter(host, folder, resolve)
    for name, server in servers.items():
        writer.add(name, server)
    return ExportedDocument(write_document(writer.document(), host.dialect.kind), tuple(writer.notes))


class _DocumentWriter:
    def __init__(self, host: KnownHost, folder: Path, resolve: Resolve | None) -> None:
        self._host, self._folder, self._resolve = host, folder, resolve
        self._entries: dict[str, dict[str, Any]] = {}
        self._inputs: dict[str, dict[str, Any]] = {}
        self.notes: list[ExportNote] = []

    def add(self, name: str, server: ServerConfig) -> None:
        table = server.model_dump(exclude_unset=True)
        writer = _EntryWriter(self._host, name, table, self._folder, self._resolve)
        try:
            entry = writer.entry()
        except _ServerLeftOut as error:
            self.notes.append(ExportNote(name, "", f"left out: {error}"))
            return
        self.notes += writer.notes
        self._inputs |= writer.inputs
        self._entries[name] = entry

    def document(self) -> dict[str, Any]:
        dialect = self._host.dialect
        servers: Any = self._entries
        if dialect.as_list:
            servers = [{"name": name, **entry} for name, entry in self._entries.items()]
        for key in reversed(dialect.path):
            servers = {key: servers}
        if self._inputs:
            servers = {"inputs": list(self._inputs.values()), **servers}
        document: dict[str, Any] = servers
        return document


class _EntryWriter:
    """Writes one server. ``table`` holds what differs from the defaults."""

    def __init__(
        self, host: KnownHost, name: str, table: dict[str, Any], folder: Path, resolve: Resolve | None
    ) -> None:
        self._label, self._dialect, self._shape = host.label, host.dialect, host.dialect.shape
        self._name, self._folder, self._resolve = name, folder, resolve
        self._keys = self._shape.keys
        self._entry: dict[str, Any] = {}
        self._noted: set[tuple[str, str]] = set()
        self.notes: list[ExportNote] = []
        self.inputs: dict[str, dict[str, Any]] = {}
        self._table = table if resolve is not None else self._without_secrets(table)

    def entry(self) -> dict[str, Any]:
        wire: Wire = "stdio" if "command" in self._table else "sse" if self._table.get("transport") == "sse" else "http"
        if ("command" if wire == "stdio" else "url") not in self._keys:
            raise _ServerLeftOut(f"{self._label} takes only {'addresses' if wire == 'stdio' else 'programs'} here")
        if wire in self._shape.lacks:
            raise _ServerLeftOut(f"{self._label} speaks Streamable HTTP, and not the older SSE")
        if self._shape.named:
            self._entry["name"] = self._name
        self._entry |= self._shape.fixed
        if wire in self._shape.types:
            self._entry[self._shape.type_key] = self._shape.types[wire]
        if wire == "stdio":
            self._program()
        else:
            self._address(wire)
        self._oauth()
        self._timeouts()
        self._tools()
        self._enabled()
        for key, value in self._shape.defaults.items():
            self._entry.setdefault(key, value)
        if more := sorted(OURS & self._table.keys()):
            self._note("", f"only mcphost has {', '.join(more)}")
        return self._entry

    # References

    def _without_secrets(self, table: dict[str, Any]) -> dict[str, Any]:
        """References to environment variables in place of literals that look secret."""
        secrets = find_secrets(table)
        for secret in secrets:
            self._note(secret.key, f"its value stays here: set the environment variable {self._variable(secret.item)}")
        return with_references(table, secrets, lambda secret: f"${{{self._variable(secret.item)}}}")

    def _variable(self, item: str) -> str:
        """The environment variable for a secret: as it is called where it is one, else after the server, too."""
        if re.fullmatch(r"[A-Z_][A-Z0-9_]*", item):
            return item
        return _NO_VARIABLE.sub("_", f"{self._name}_{item}".upper()).lstrip("0123456789") or "SECRET"

    def _note(self, key: str, reason: str) -> None:
        if (key, reason) not in self._noted:
            self._noted.add((key, reason))
            self.notes.append(ExportNote(self._name, key, reason))

    def _spelled(self, text: str, key: str) -> str | None:
        """The text with its references in the host's syntax; None where it has none."""
        spelled = ""
        for piece in pieces_of(text):
            if isinstance(piece, Reference):
                part = self._reference(piece, key)
                if part is None:
                    return None
                spelled += part
            else:
                if taken_for_variables(piece, self._dialect.syntax_of(key.partition(".")[0])):
                    self._note(key, f"{self._label} takes part of it for a variable")
                spelled += piece
        return spelled

    def _reference(self, reference: Reference, key: str) -> str | None:
        write = self._dialect.syntax_of(key.partition(".")[0]).write
        if reference.kind != "env":
            return self._secret(reference, key, write)
        if (spelled := write(reference.name, reference.default)) is not None:
            return spelled
        if self._resolve is not None:
            return self._resolve(reference, f"servers.{self._name}.{key}")
        if (spelled := write(reference.name, None)) is not None:
            self._note(key, f"the default of {reference.name} is lost: {self._label} knows none")
        return spelled

    def _secret(self, reference: Reference, key: str, write: Callable[[str, str | None], str | None]) -> str | None:
        if self._resolve is not None:
            return self._resolve(reference, f"servers.{self._name}.{key}")
        if self._dialect.id == "opencode" and reference.kind == "file":
            return f"{{file:{reference.name if reference.name.startswith('~') else self._folder / reference.name}}}"
        if self._dialect.inputs:
            identifier = input_id(reference.name)
            about = f"{self._name}: {key}"
            self.inputs[identifier] = {
                "type": "promptString", "id": identifier, "description": about, "password": True,
            }  # fmt: skip
            self._note(key, f"{self._label} asks for the value of the {reference.origin}")
            return f"${{input:{identifier}}}"
        name = self._secret_variable(reference)
        if (spelled := write(name, None)) is not None:
            self._note_variable(key, reference, name)
        return spelled

    def _secret_variable(self, reference: Reference) -> str:
        is_item = reference.kind == "keyring"
        return self._variable(reference.name.removeprefix(f"{self._name}.") if is_item else Path(reference.name).stem)

    def _note_variable(self, key: str, secret: Reference, name: str) -> None:
        self._note(key, f"its value stays in the {secret.origin}: set the environment variable {name}")

    def _needed(self, text: str, key: str) -> str:
        """As `_spelled`, for a text without which the server cannot run. Raises `_ServerLeftOut`."""
        if (spelled := self._spelled(text, key)) is None:
            raise _ServerLeftOut(f"{key} has a variable, and {self._label} knows none there; see --inline-secrets")
        return spelled

    # A program

    def _program(self) -> None:
        command = os.path.expanduser(self._needed(self._table["command"], "command"))
        args = [self._needed(text, f"args[{index}]") for index, text in enumerate(self._table.get("args", ()))]
        if self._shape.command_list:
            self._put("command", [command, *args])
        else:
            self._put("command", command)
            if args or "args" in self._keys:
                self._put("args", args)
        self._environment()
        if cwd := self._table.get("cwd"):
            path = self._needed(cwd, "cwd")
            path = path if path.startswith(("$", "{")) else str(self._folder / os.path.expanduser(path))
            if "cwd" in self._keys:
                self._put("cwd", path)
            else:
                self._note("cwd", f"{self._label} has no such setting; it would have to start in {path}")

    def _environment(self) -> None:
        env: dict[str, str] = {}
        passed = [*self._table.get("env_vars", ())]
        for name, text in self._table.get("env", {}).items():
            pieces = pieces_of(text)
            own = self._same_variable(name, pieces) if "env_vars" in self._keys else None
            if own is not None and (self._resolve is None or own.kind == "env"):
                passed.append(name)
                if own.kind != "env":
                    self._note_variable(f"env.{name}", own, name)
            elif (spelled := self._spelled(text, f"env.{name}")) is not None:
                env[name] = spelled
            else:
                self._note(f"env.{name}", _NO_VARIABLES.format(self._label))
        if "env_vars" not in self._keys:
            for name in passed:
                if (spelled := self._spelled(f"${{{name}}}", f"env.{name}")) is not None:
                    env[name] = spelled
                else:
                    self._note(f"env_vars.{name}", f"left out: {self._label} has no variables; set it there")
        elif passed:
            self._put("env_vars", passed)
        if env:
            self._put("env", env)

    def _same_variable(self, name: str, pieces: Sequence[str | Reference]) -> Reference | None:
        """The value, if it is nothing but the variable of that name, or a secret that would be called so."""
        if len(pieces) != 1 or not isinstance(reference := pieces[0], Reference):
            return None
        if reference.kind == "env":
            return reference if reference.name == name and reference.default is None else None
        return reference if self._variable(name) == name else None

    # An address

    def _address(self, wire: Wire) -> None:
        url = self._needed(self._table["url"], "url")
        if wire == "sse" and self._shape.sse_url:
            self._set(self._shape.sse_url, url)
        else:
            self._put("url", url)
        headers: dict[str, str] = dict(self._table.get("http_headers", {}))
        variables: dict[str, str] = dict(self._table.get("env_http_headers", {}))
        bearer = self._table.get("bearer_token_env_var")
        if bearer is None and "bearer_token_env_var" in self._keys:
            bearer = self._bearer(headers)
        if "env_http_headers" in self._keys:
            for name, text in headers.items():
                if variable := self._lone_variable(pieces_of(text), f"http_headers.{name}"):
                    variables[name] = variable
            headers = {name: text for name, text in headers.items() if name not in variables}
        else:
            headers |= {name: f"${{{variable}}}" for name, variable in variables.items()}
            variables = {}
        if bearer is not None and "bearer_token_env_var" not in self._keys:
            headers["Authorization"] = f"Bearer ${{{bearer}}}"
        elif bearer is not None:
            self._put("bearer_token_env_var", bearer)
        self._header_members(headers)
        if variables:
            self._put("env_http_headers", variables)

    def _bearer(self, headers: dict[str, str]) -> str | None:
        """The variable that holds the token of a header, which is taken out; only where it cannot be written there."""
        name = next((name for name in headers if name.lower() == "authorization"), "")
        scheme, *rest = pieces_of(headers.get(name, "")) or [""]
        is_bearer = isinstance(scheme, str) and scheme.lower() == "bearer "
        if not is_bearer or self._dialect.syntax.write("X", None) is not None:
            return None
        if variable := self._lone_variable(rest, f"http_headers.{name}"):
            del headers[name]
        return variable

    def _lone_variable(self, pieces: Sequence[str | Reference], key: str) -> str | None:
        """The environment variable from which the host can read all of a value; its default is lost."""
        if len(pieces) != 1 or not isinstance(one := pieces[0], Reference):
            return None
        if one.kind == "env":
            if one.default is not None and self._resolve is not None:
                return None
            if one.default:
                self._note(key, f"the default of {one.name} is lost: {self._label} knows none")
            return one.name
        if self._resolve is not None:
            return None
        variable = self._secret_variable(one)
        self._note_variable(key, one, variable)
        return variable

    def _header_members(self, headers: Mapping[str, str]) -> None:
        written: dict[str, str] = {}
        for name, text in headers.items():
            if (spelled := self._spelled(text, f"http_headers.{name}")) is not None:
                written[name] = spelled
            else:
                reason = _NO_VARIABLES.format(self._label)
                self._note(f"http_headers.{name}", reason)
        if written and self._shape.header_lines:
            self._put("http_headers", [f"{name}: {text}" for name, text in written.items()])
        elif written:
            self._put("http_headers", written)

    def _oauth(self) -> None:
        for key, value in self._table.get("oauth", {}).items():
            if (key, value) == ("enabled", True):
                continue
            theirs = self._shape.oauth.get(key)
            if theirs is None:
                self._note(f"oauth.{key}", f"{self._label} has no such setting")
                continue
            if isinstance(value, str):
                value = self._spelled(value, f"oauth.{key}")
            elif isinstance(value, tuple | list):
                words = [text for each in value if (text := self._spelled(each, "oauth.scopes")) is not None]
                value = " ".join(words) if self._shape.scopes_as_text else words
            if value is not None:
                self._set(theirs, value)

    # Both

    def _timeouts(self) -> None:
        for ours in ("tool_timeout_sec", "startup_timeout_sec"):
            if (seconds := self._table.get(ours)) is None:
                continue
            known = ((key, unit) for key, (target, unit) in self._dialect.timeouts.items() if target == ours and unit)
            matching = sorted(known, key=lambda pair: pair[1] != 1.0)
            if not matching:
                self._note(ours, f"{self._label} has no such setting")
                continue
            key, unit = matching[0]
            amount = round(seconds / unit, 3)
            self._set(key, int(amount) if amount == int(amount) else amount)

    def _tools(self) -> None:
        for ours in ("enabled_tools", "disabled_tools"):
            patterns = self._table.get(ours) or ()
            if not patterns or patterns == ("*",):
                continue
            if ours not in self._keys:
                self._note(ours, f"{self._label} has no such setting")
            elif any(re.search(r"[*?\[]", _UNESCAPED.sub("", pattern)) for pattern in patterns):
                self._note(ours, f"left out: {self._label} knows names of tools, no patterns")
            else:
                self._put(ours, [_UNESCAPED.sub(r"\1", pattern) for pattern in patterns])

    def _enabled(self) -> None:
        if self._table.get("enabled", True):
            return
        if self._shape.enabled:
            self._set(self._shape.enabled, self._shape.enabled == "disabled")
        else:
            raise _ServerLeftOut(f"it is disabled here, and {self._label} has no such setting")

    def _put(self, ours: str, value: object) -> None:
        self._set(self._keys[ours], value)

    def _set(self, path: str, value: object) -> None:
        """Set a member of the entry by its dotted path."""
        *way, last = path.split(".")
        inner = self._entry
        for key in way:
            inner = inner.setdefault(key, {})
        inner[last] = value
