"""Reads one entry of any host: what mcphost has a key for becomes that key, and the rest is noted with its reason.

The keys of all hosts are understood everywhere; only the syntax of variables and the units of timeouts depend on
the dialect.
"""

from __future__ import annotations

import glob
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from mcphost.config.fields import HEADER_NAME, VARIABLE_NAME
from mcphost.config.references import VARIABLE
from mcphost.config.servers import ServerConfig, is_protocol_header
from mcphost.imports.dialects.dialect import EntryGroup, HostDialect, HostDocument
from mcphost.imports.dialects.env_file import EnvFileUnreadableError, read_env_file
from mcphost.imports.found import FoundServer, ImportNote, Input, Origin, digest_of, legal_name
from mcphost.imports.inputs import input_id
from mcphost.imports.variables import UntranslatableError, VariableContext, translate
from mcphost.json_values import as_list, as_text

WIRES: Final = {
    "stdio": "stdio", "local": "stdio",
    "http": "http", "streamable-http": "http", "streamable_http": "http", "streamablehttp": "http",
    "streamable-https": "http", "sse": "sse", "remote": "",
}  # fmt: skip
"""``type``, in small letters, with our transport; empty: any over HTTP."""
_BUILT_IN: Final = frozenset({"builtin", "platform", "inmemory", "inline_python", "frontend"})

COMMAND_KEYS = ("command", "cmd")
URL_KEYS = ("httpUrl", "url", "serverUrl", "uri", "baseUrl")
TYPE_KEYS = ("type", "transport", "transportType")
ENVIRONMENT_KEYS = ("env", "envs", "environment")
HEADER_KEYS = ("headers", "http_headers")
_ENABLED_TOOLS = ("includeTools", "enabled_tools", "enabledTools", "available_tools", "allowedTools", "tools")
_DISABLED_TOOLS = ("excludeTools", "disabledTools", "disabled_tools", "excludedTools")

_APPROVALS = "approvals of other programs are not taken over"
_SANDBOX = "it ran in a sandbox there; mcphost does not sandbox"
NEVER: Final[Mapping[str, str]] = {
    "trust": _APPROVALS, "autoapprove": _APPROVALS, "alwaysallow": _APPROVALS, "approval_mode": _APPROVALS,
    "default_tools_approval_mode": _APPROVALS, "permissions": _APPROVALS, "tools": _APPROVALS,
    "autoapproveall": _APPROVALS,
    "sandbox": _SANDBOX, "sandboxenabled": _SANDBOX,
    "headershelper": "mcphost runs no program to make headers; give them yourself",
    "authprovidertype": "mcphost signs in by OAuth only",
    "apikey": "mcphost does not know how the key is sent; add a header yourself",
}  # fmt: skip
"""Keys, in small letters, that are left out for a reason of their own."""
_SILENT: Final = frozenset({"name", "source", "description", "$schema", "id", "displayname", "title", "bundled"})
"""Keys that say nothing about how a server runs."""
_NO_SUCH_SETTING = "mcphost has no such setting"
_YOURS = "this is yours to set in mcphost; it is not taken from elsewhere"

_OAUTH_KEYS: Final = {
    "clientid": "client_id", "client_id": "client_id", "clientsecret": "client_secret",
    "client_secret": "client_secret", "scopes": "scopes", "scope": "scopes",
    "callbackport": "redirect_port", "redirectport": "redirect_port", "enabled": "enabled",
}  # fmt: skip
"""Keys of a sign-in, in small letters, with ours."""

LONGEST: Final[Mapping[str, float]] = {
    "tool_timeout_sec": ServerConfig.model_fields["tool_timeout_max_sec"].default,  # which is not taken over
    "startup_timeout_sec": 86_400.0,
}
"""Seconds of the longest timeouts."""
MAX_WORDS: Final = 1000
"""Arguments, variables or headers of one entry."""

_FROM_HERE: Final = ("./", "../", ".\\", "..\\")
_SCRIPT: Final = re.compile(
    r"\w[\w./\\-]*\.(?:[cm]?[jt]s|[jt]sx|pyz?|rb|php|pl|lua|sh|ps1|jar|dll|wasm|csproj)", re.IGNORECASE
)
_BEARER = re.compile(rf"Bearer \$\{{({VARIABLE})\}}")


class RefusedEntryError(Exception):
    """The entry cannot be imported; ``str()`` is a clause that says why."""


def read_group(group: EntryGroup, dialect: HostDialect, source: HostDocument) -> Iterator[FoundServer]:
    """Read the entries of a group; one that cannot be imported has a ``refusal``. Never raises."""
    scope = ", ".join(filter(None, (source.scope, group.scope)))
    here = replace(source, scope=scope, workspace=group.workspace or source.workspace)
    inputs = _declared_inputs(group.inputs)
    for name, raw in named_entries(group.entries):
        yield _read(name, raw, dialect, here, inputs)


def named_entries(entries: object) -> Iterator[tuple[str, object]]:
    """The entries of a group with their names."""
    if isinstance(entries, Mapping):
        yield from ((str(name), raw) for name, raw in entries.items())
    elif isinstance(entries, Sequence) and not isinstance(entries, str | bytes):
        for index, raw in enumerate(entries, 1):
            name = raw.get("name") if isinstance(raw, Mapping) else None
            yield (name if isinstance(name, str) and name else f"server-{index}"), raw


def is_command_line(command: str) -> bool:
    """True if a text with blanks holds arguments, too. A path may have blanks: then the file itself decides."""
    try:
        first = (shlex.split(command) or [""])[0]
    except ValueError:
        first = command.split()[0]
    return not re.search(r"[/\\]", first) or (os.path.isfile(first) and not os.path.exists(command))


def starts_mcphost(words: Sequence[str]) -> bool:
    """True if a command line is that of an mcphost that taps or gates, as `mcphost wrap` writes it."""
    named = bool(words) and ("mcphost" in (_program_name(words[0]), *words[1:4]))
    return named and any(word in ("gate", "tap") for word in words[1:5]) and {"--", "--name"} <= {*words}


def _read(
    name: str, raw: object, dialect: HostDialect, source: HostDocument, inputs: Mapping[str, Input | None]
) -> FoundServer:
    origin = Origin(source.host, source.place, name, digest_of(raw), source.scope)
    if not isinstance(raw, Mapping):
        return FoundServer(legal_name(name), origin, {}, refusal="its entry is not a table")
    reader = _EntryReader(raw, dialect, source)
    try:
        table = reader.read()
        used = tuple(_input(identifier, inputs) for identifier in sorted(reader.used_inputs))
    except (RefusedEntryError, UntranslatableError) as error:
        return FoundServer(legal_name(name), origin, {}, refusal=str(error), disabled_there=reader.disabled)
    return FoundServer(
        legal_name(name),
        origin,
        table,
        used,
        tuple(reader.notes),
        description=as_text(raw.get("description")),
        disabled_there=reader.disabled,
    )


class _EntryReader:
    """Translates one entry. What was understood is removed from what is left; the rest becomes notes."""

    def __init__(self, raw: Mapping[str, Any], dialect: HostDialect, source: HostDocument) -> None:
        self._left = dict(raw)
        self._dialect, self._source = dialect, source
        self._table: dict[str, Any] = {}
        self.notes: list[ImportNote] = []
        self.disabled = self._is_disabled()
        self._context = VariableContext(
            source.workspace, source.folder, separator="\\" if source.platform == "win32" else "/"
        )
        self.used_inputs = self._context.used_inputs

    def read(self) -> dict[str, Any]:
        """Return the table. Raises RefusedEntryError and UntranslatableError."""
        if self._left.get("source") == "extension":
            raise RefusedEntryError("it comes with an extension, and the file does not say how to run it")
        self._unfold_command()
        self._leave_out_mcphost()
        wire = self._wire()
        if wire == "stdio":
            self._program()
        else:
            self._address(wire)
        self._timeouts()
        self._tools()
        if self.disabled:
            self._table["enabled"] = False
        self._note_rest()
        return self._table

    # What is there

    def _take(self, *keys: str) -> Any:
        """Remove all of ``keys`` from what is left, and return the first value that is not null."""
        values = [self._left.pop(key) for key in keys if key in self._left]
        return next((value for value in values if value is not None), None)

    def _note(self, key: str, reason: str) -> None:
        self.notes.append(ImportNote(key, reason))

    def _translate(self, text: str, key: str, *, own: frozenset[str] = frozenset()) -> str:
        """Translate the value of one of mcphost's keys, dotted. Raises UntranslatableError."""
        syntax = self._dialect.syntax_of(key.partition(".")[0])
        translated = translate(text, syntax, replace(self._context, own=own))
        if "$${" in translated and not own:
            self._note(key, "its ${…} is plain text there, and so it stays")
        return translated

    def _text(self, value: object, key: str) -> str:
        if not isinstance(value, str):
            raise RefusedEntryError(f"{key} is not a text")
        return value

    def _word(self, value: object, key: str) -> str:
        """An argument or a value of a variable, where hosts take numbers and booleans as well."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return str(value)
        return self._text(value, key)

    def _is_disabled(self) -> bool:
        enabled, disabled, state = self._take("enabled"), self._take("disabled"), self._take("state")
        return enabled is False or disabled is True or state == "disabled"

    def _wire(self) -> str:
        named = self._take(*TYPE_KEYS)
        has_command = any(self._left.get(key) is not None for key in COMMAND_KEYS)
        has_url = any(self._left.get(key) is not None for key in URL_KEYS)
        if named is None:
            if has_command == has_url:
                both = "it has both a command and a URL" if has_command else "it has neither a command nor a URL"
                raise RefusedEntryError(both)
            return "stdio" if has_command else ""
        word = self._text(named, "type").lower()
        if word in _BUILT_IN:
            raise RefusedEntryError(f"it is built into {self._source.label or 'the program'}")
        if word in ("ws", "websocket"):
            raise RefusedEntryError("it speaks WebSocket, which mcphost does not")
        if (wire := WIRES.get(word)) is None:
            raise RefusedEntryError("its type is unknown")
        if not (has_command if wire == "stdio" else has_url):
            if wire == "stdio" and has_url:  # some hosts write it nonetheless
                return ""
            raise RefusedEntryError(f"its type is {word}, and it has no {'command' if wire == 'stdio' else 'URL'}")
        return wire

    # A program

    def _unfold_command(self) -> None:
        """Turn ``command`` as a table (Zed) or a list (opencode) into ``command``, ``args`` and ``env``."""
        key = next((key for key in COMMAND_KEYS if self._left.get(key) is not None), None)
        value = None if key is None else self._left[key]
        if key is None or isinstance(value, str):
            return
        if isinstance(value, Mapping):
            self._left[key] = value.get("path")
            for part in ("args", "env"):
                if value.get(part) is not None:
                    self._left.setdefault(part, value[part])
        elif isinstance(value, list) and value:
            rest = self._left.get("args")
            self._left[key], self._left["args"] = value[0], [*value[1:], *as_list(rest)]
        if not isinstance(self._left[key], str):
            raise RefusedEntryError("command is not a text")

    def _leave_out_mcphost(self) -> None:
        """Put back the program or the address that was there before `mcphost wrap`."""
        key = next((key for key in COMMAND_KEYS if self._left.get(key) is not None), None)
        words = [] if key is None else [self._left[key], *as_list(self._left.get("args"))]
        if key is None or not all(isinstance(word, str) for word in words) or not starts_mcphost(words):
            return
        at = words.index("--")
        options, target = words[:at], words[at + 1 :]
        if not target:
            return
        self._note("command", "mcphost before it, as mcphost wrap put it there, is left out")
        if len(target) > 1 or not target[0].startswith(("http://", "https://")):
            self._left[key], self._left["args"] = target[0], target[1:]
            return
        env = self._pairs(self._take(*ENVIRONMENT_KEYS), "env")
        given = (after.partition("=") for word, after in pairwise(options) if word == "--header-env")
        self._take(key, "args", *TYPE_KEYS)
        headers = {name: env[variable] for name, _, variable in given if variable in env}
        self._left |= {"url": target[0], "headers": headers}

    def _program(self) -> None:
        command, args = self._command_line()
        for key in URL_KEYS:
            self._left.pop(key, None)
        env = self._environment()
        own = frozenset(name for name, text in env.items() if not text.startswith((f"${{{name}}}", f"${{{name}:-")))
        self._table["command"] = self._translate(command, "command")
        if args:
            self._table["args"] = [self._translate(word, "args", own=own) for word in args]
        if env:
            self._table["env"] = env
        names = [name for name in self._words("env_vars") if self._is_variable(name) and name not in env]
        if names:
            self._table["env_vars"] = names
        self._folder([command, *args])

    def _command_line(self) -> tuple[str, list[str]]:
        command = self._text(self._take(*COMMAND_KEYS), "command").strip()
        args = self._words("args")
        if " " in command and not args and is_command_line(command):
            command, args = self._split(command)
        if not command:
            raise RefusedEntryError("its command is empty")
        command, args = self._without_cmd(command, args)
        if _program_name(command) == "npx" and args and not {"-y", "--yes"} & set(_options(args)):
            args = ["-y", *args]
            self._note("args", "-y is added: npx would wait for an answer before it installs")
        return command, args

    def _split(self, command: str) -> tuple[str, list[str]]:
        try:
            words = shlex.split(command)
        except ValueError:
            raise RefusedEntryError("its command has a quote without end") from None
        self._note("command", "it is a command line; split into a program and its arguments")
        return (words[0], words[1:]) if words else ("", [])

    def _without_cmd(self, command: str, args: list[str]) -> tuple[str, list[str]]:
        """``cmd /c npx …`` starts scripts on Windows; elsewhere there is no cmd."""
        if self._source.platform == "win32" or _program_name(command) != "cmd":
            return command, args
        flags = [word for word in args[:3] if word.lower() in ("/c", "/d", "/s", "/k")]
        rest = args[len(flags) :]
        if "/c" not in map(str.lower, flags) or not rest:
            return command, args
        self._note("command", "cmd /c, which only Windows needs, is left out")
        if len(rest) == 1 and " " in rest[0]:
            return self._split(rest[0])
        return rest[0], rest[1:]

    def _words(self, key: str) -> list[str]:
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise RefusedEntryError(f"{key} is not a list")
        if len(value) > MAX_WORDS:
            raise RefusedEntryError(f"{key} has more than {MAX_WORDS} elements")
        return [self._word(each, key) for each in value]

    def _pairs(self, value: object, key: str) -> dict[str, str]:
        """A table of texts; what is null is left out."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise RefusedEntryError(f"{key} is not a table")
        if len(value) > MAX_WORDS:
            raise RefusedEntryError(f"{key} has more than {MAX_WORDS} members")
        return {str(name): self._word(each, f"{key}.{name}") for name, each in value.items() if each is not None}

    def _environment(self) -> dict[str, str]:
        given = self._pairs(self._take(*ENVIRONMENT_KEYS), "env")
        env = {}
        for name, text in given.items():
            if self._is_variable(name):
                env[name] = self._env_value(text, f"env.{name}")
        for name in self._words("env_keys"):  # Goose keeps their values in its own keychain
            if self._is_variable(name) and name not in env:
                env[name] = self._translate_input(name)
        return {**self._from_env_file(), **env}

    def _env_value(self, text: str, key: str) -> str:
        percent = re.fullmatch(rf"%({VARIABLE})%", text)
        if percent and self._dialect.id == "gemini":
            return f"${{{percent[1]}}}"
        return self._translate(text, key)

    def _translate_input(self, name: str) -> str:
        identifier = input_id(name)
        self.used_inputs.add(identifier)
        return f"${{input:{identifier}}}"

    def _is_variable(self, name: str) -> bool:
        if VARIABLE_NAME.fullmatch(name):
            return True
        self._note("env", "a name that no environment variable can have is left out")
        return False

    def _from_env_file(self) -> dict[str, str]:
        value = self._take("envFile")
        if value is None:
            return {}
        try:
            path = self._translate(self._text(value, "envFile"), "env")
            read = read_env_file(path, self._source.workspace, self._source.folder)
        except EnvFileUnreadableError as error:
            self._note("envFile", str(error))
            return {}
        self._note("envFile", f"{len(read)} variables were read from it, as they are now")
        return read

    def _folder(self, words: Sequence[str]) -> None:
        given, workspace = self._take("cwd", "workingDirectory"), self._source.workspace
        if given is not None:
            text = self._translate(self._text(given, "cwd"), "cwd")
            if text and not _is_absolute(text) and not text.startswith(("${", "~")):
                if workspace is None:
                    self._note("cwd", "it is relative to the folder where that program was started; set it yourself")
                    return
                text = str(workspace / text)
            if text:
                self._table["cwd"] = text
        elif any(map(_is_relative, words[:1])) or any(map(_is_file_there, words[1:])):
            if workspace is None:
                self._note("cwd", "it has a relative path, which starts where mcphost is started; set cwd if need be")
            else:
                self._table["cwd"] = str(workspace).replace("${", "$${")

    # An address

    def _address(self, wire: str) -> None:
        for key in (*COMMAND_KEYS, "args", *ENVIRONMENT_KEYS):
            self._left.pop(key, None)
        url = self._url(self._text(self._take(*URL_KEYS), "url").strip())
        if wire:
            self._table["transport"] = wire
        self._table = {"url": url, **self._table}
        self._split_headers(self._headers())
        self._oauth()

    def _url(self, url: str) -> str:
        scheme = url.partition(":")[0].lower()
        if scheme in ("ws", "wss"):
            raise RefusedEntryError("it speaks WebSocket, which mcphost does not")
        if scheme in ("unix", "pipe"):
            raise RefusedEntryError("it speaks HTTP over a local socket, which mcphost does not")
        text = self._translate(url, "url")
        if "#" in text and "${" not in text:
            text = text.partition("#")[0]
            self._note("url", "what follows its # is left out: it is never sent")
        return text

    def _headers(self) -> dict[str, str]:
        for key in ("requestOptions", "requestInit"):
            if isinstance(options := self._take(key), Mapping):
                self._left.setdefault("headers", options.get("headers"))
                if options.keys() - {"headers"}:
                    self._note(key, _NO_SUCH_SETTING)
        value = self._take(*HEADER_KEYS)
        if isinstance(value, list):  # "Name: value" lines
            lines = [self._text(each, "headers").partition(":") for each in value[:MAX_WORDS]]
            value = {name.strip(): text.strip() for name, _, text in lines}
        pairs = self._pairs(value, "headers")
        kept = {name: text for name, text in pairs.items() if self._is_header(name)}
        return {name: self._translate(text, f"http_headers.{name}") for name, text in kept.items()}

    def _is_header(self, name: str) -> bool:
        if not HEADER_NAME.fullmatch(name):
            self._note("headers", "a name that no header can have is left out")
            return False
        if is_protocol_header(name):
            self._note("headers", f"{name} is the protocol's own, and mcphost sends it")
            return False
        return True

    def _split_headers(self, headers: dict[str, str]) -> None:
        bearer = self._take("bearer_token_env_var", "bearer_token_env", "bearerTokenEnv", "bearerTokenEnvVar")
        if bearer is None:
            name = next((name for name in headers if name.lower() == "authorization"), "")
            if match := _BEARER.fullmatch(headers.get(name, "")):
                bearer = match[1]
                del headers[name]
        if headers:
            self._table["http_headers"] = headers
        from_env = self._pairs(self._take("env_http_headers"), "env_http_headers")
        if from_env:
            self._table["env_http_headers"] = {name: each for name, each in from_env.items() if self._is_header(name)}
        if bearer is not None:
            self._table["bearer_token_env_var"] = self._text(bearer, "bearer_token_env_var")

    def _oauth(self) -> None:
        given: dict[str, Any] = {}
        for key in ("oauth", "auth"):
            value = self._take(key)
            if value is False:
                given["enabled"] = False
            elif isinstance(value, Mapping):
                given |= value
        for key, theirs in (("oauthClientId", "clientId"), ("oauthScopes", "scopes"), ("scopes", "scopes")):
            if (value := self._take(key)) is not None:
                given.setdefault(theirs, value)
        oauth: dict[str, Any] = {}
        for key, value in given.items():
            self._oauth_member(str(key), value, oauth)
        if "client_secret" in oauth and "client_id" not in oauth:
            del oauth["client_secret"]
            self._note("oauth", "a client secret without the client that it belongs to is left out")
        if oauth:
            self._table["oauth"] = oauth

    def _oauth_member(self, key: str, value: object, oauth: dict[str, Any]) -> None:
        ours = _OAUTH_KEYS.get(key.lower())
        if value is None or value == "":
            return
        match ours, value:
            case ("client_id" | "client_secret", str()):
                oauth[ours] = self._translate(value, f"oauth.{ours}")
            case ("scopes", str() | list()):
                words = value.split() if isinstance(value, str) else [each for each in value if isinstance(each, str)]
                if words := [self._translate(each, "oauth.scopes") for each in words if each.strip()][:MAX_WORDS]:
                    oauth["scopes"] = words
            case ("redirect_port", int()) if not isinstance(value, bool) and 0 <= value <= 65_535:
                oauth["redirect_port"] = value
            case ("enabled", bool()):
                oauth |= {} if value else {"enabled": False}
            case _:
                self._note(
                    f"oauth.{key}", "mcphost finds out by itself how to sign in" if not ours else "it is unusable"
                )

    # Both

    def _timeouts(self) -> None:
        for key, (ours, unit) in self._dialect.timeouts.items():
            value = self._take(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
                self._note(key, "it is not a number of seconds or milliseconds")
                continue
            factor = unit if unit is not None else 0.001 if value >= 1000 else 1.0
            seconds = round(min(value, 1e12) * factor, 3)
            if seconds < 1:
                self._note(key, "it is less than a second, which no server keeps to")
                continue
            if seconds > (longest := LONGEST[ours]):
                self._note(key, f"it is shortened from {seconds:g} to {longest:g} seconds")
                seconds = longest
            self._table[ours] = seconds

    def _tools(self) -> None:
        for ours, keys in (("enabled_tools", _ENABLED_TOOLS), ("disabled_tools", _DISABLED_TOOLS)):
            for key in keys:
                value = self._left.get(key)
                if not isinstance(value, list):  # Codex has a table of this name, with approvals
                    continue
                del self._left[key]
                names = [_pattern(each) for each in value[:MAX_WORDS] if isinstance(each, str) and each.strip()]
                if names and names != ["*"]:
                    self._table[ours] = names

    def _note_rest(self) -> None:
        for key, value in self._left.items():
            if value is None or value is False or value in ("", [], {}) or key.lower() in _SILENT:
                continue
            reason = _YOURS if key in ServerConfig.model_fields else _NO_SUCH_SETTING
            self._note(key, NEVER.get(key.lower(), reason))


def _pattern(tool: str) -> str:
    """Return the name of a tool as a pattern of mcphost; a lone ``*`` means all everywhere."""
    return tool if tool == "*" else glob.escape(tool)


def _program_name(command: str) -> str:
    """``npx`` of ``C:\\Program Files\\nodejs\\npx.cmd``."""
    return PureWindowsPath(command).name.lower().removesuffix(".cmd").removesuffix(".exe")


def _options(args: Sequence[str]) -> Iterator[str]:
    """The options before the first other word."""
    for word in args:
        if not word.startswith("-"):
            return
        yield word


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _is_relative(command: str) -> bool:
    return (
        re.search(r"[/\\]", command) is not None
        and not command.startswith(("~", "$", "{", "%"))
        and not _is_absolute(command)
    )


def _is_file_there(argument: str) -> bool:
    """True if it names a file or folder where the program starts, as ``.``, ``./data`` and ``server.js`` do."""
    return argument in (".", "..") or argument.startswith(_FROM_HERE) or _SCRIPT.fullmatch(argument) is not None


# Inputs

MAX_INPUTS: Final = 200


def _declared_inputs(value: object) -> dict[str, Input | None]:
    """VS Code's inputs by id; None for one that only an extension can answer."""
    declared: dict[str, Input | None] = {}
    for each in value[:MAX_INPUTS] if isinstance(value, list) else ():
        if isinstance(each, Mapping) and isinstance(name := each.get("id"), str):
            identifier = input_id(name)
            declared[identifier] = None if each.get("type") == "command" else _declared_input(identifier, each)
    return declared


def _declared_input(identifier: str, raw: Mapping[str, Any]) -> Input:
    about, default, options = raw.get("description"), raw.get("default"), raw.get("options")
    choices = (
        [each.get("value") if isinstance(each, Mapping) else each for each in options]
        if isinstance(options, list)
        else []
    )
    return Input(
        identifier,
        as_text(about),
        secret=raw.get("password") is True,
        default=default if isinstance(default, str) and default else None,
        choices=tuple(each for each in choices[:MAX_INPUTS] if isinstance(each, str)),
    )


def _input(identifier: str, declared: Mapping[str, Input | None]) -> Input:
    found = declared.get(identifier, Input(identifier, secret=True))
    if found is None:
        raise RefusedEntryError(f"it needs the input {identifier}, which only an extension of VS Code can give")
    return found
