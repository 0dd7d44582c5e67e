"""Writes a tool call as texts to copy: a command line, JSON-RPC, curl, and a rule for the configuration.

No secret that mcphost knows gets into a copy: variables of the shell stand for secrets. Copies are pasted into shells,
so that characters that cannot be seen are written as escapes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from mcphost.config.references import MalformedReferenceError, Reference, parse
from mcphost.config.servers import ServerConfig
from mcphost.config.servers_file import servers_toml
from mcphost.errors import McphostError, NotDone
from mcphost.host.catalog import Catalog
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.argument_rules import fits, problem, suggested
from mcphost.host.traffic.book import TrafficBook
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.headers import PARAMETER_PREFIX, decode_header_value
from mcphost.protocol.wire.jsonrpc import Request
from mcphost.redaction import MASK, Mask, is_secret_header, looks_secret, safe_url

SESSION_HEADER: Final = "Mcp-Session-Id"

HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
"""Headers of every message over Streamable HTTP."""

ARGUMENTS: Final = "--args"
"""The option of ``mcphost call`` that takes all arguments as one JSON object."""

SSE_ONLY: Final = "2024-11-05"
"""The revision whose HTTP servers have no address to which curl could send a call."""

SEARCHED: Final = 2000
"""Messages of the traffic in which the last HTTP request of a server is looked for."""


class CopyKind(Enum):
    """The value is the kind's name on screen."""

    COMMAND = "mcphost call"
    JSON_RPC = "JSON-RPC"
    CURL = "curl"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class CallCopy:
    """A text to copy; ``variables`` are the names of those that stand for secrets in it."""

    kind: CopyKind
    text: str
    variables: tuple[str, ...] = ()
    problem: str = ""
    """The reason for an empty text."""


class _Variables:
    """Puts marks in place of secrets, which become variables of the shell once the text is written.

    A mark is a random word, which no JSON, header or quoting changes.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask, self._mark = mask, token_hex(12)
        self._held: dict[str, str] = {}
        """The secret or the reference behind each variable, by its name."""

    @property
    def names(self) -> list[str]:
        return list(self._held)

    def put(self, name: str, secret: str) -> str:
        """A mark for a variable with a name like this; another secret gets another variable."""
        plain = re.sub(r"\W+", "_", name.upper(), flags=re.ASCII).strip("_") or "SECRET"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        variable, count = plain, 1
        while self._held.setdefault(variable, secret) != secret:
            count += 1
            variable = f"{plain}_{count}"
        return f"{self._mark}x{self.names.index(variable)}x"

    def hide(self, value: Any, name: str) -> Any:
        """A JSON value whose texts with secrets are marks, named after where they are."""
        if isinstance(value, str):
            # Not every word may name a variable of its own: $PATH is another one.
            variable = name if looks_secret(name) else f"secret_{name}"
            is_secret = MASK in value or self._mask(value) != value  # the history keeps secrets masked
            return self.put(variable, value) if is_secret else value
        if isinstance(value, list):
            return [self.hide(item, f"{name}_{index}") for index, item in enumerate(value, 1)]
        if isinstance(value, Mapping):
            return {self.hide(key, f"{name}_key"): self.hide(item, key) for key, item in value.items()}
        return value

    def hide_parts(self, text: str, name: str) -> str:
        """A text in which marks stand for its references and for what is secret in it."""
        try:
            pieces = parse(text)
        except MalformedReferenceError:
            pieces = (text,)
        return "".join(
            self._reference(piece) if isinstance(piece, Reference) else self._parts(piece, name) for piece in pieces
        )

    def _parts(self, text: str, name: str) -> str:
        masked = self._mask(safe_url(text))
        return text if masked == text else self.put(name, text).join(masked.split(MASK))

    def _reference(self, reference: Reference) -> str:
        return self.put(reference.name if reference.kind != "file" else Path(reference.name).stem, reference.text)

    def quoted(self, word: str) -> str:
        """A word of a shell's command line."""
        return self._written(word, lambda text: text and shlex.quote(text), '"${}"') or "''"

    def plain(self, text: str) -> str:
        """A text outside of a shell, in which nothing is quoted."""
        return self._written(text, str, "${}")

    def finished(self, kind: CopyKind, text: str) -> CallCopy:
        """The copy, without a secret that is not within a text of the arguments, such as a number."""
        return CallCopy(kind, self._mask(text), tuple(self.names))

    def _written(self, text: str, literal: Callable[[str], str], variable: str) -> str:
        pieces, names = re.split(rf"{self._mark}x([0-9]+)x", text), self.names
        return "".join(
            variable.format(names[int(piece)]) if index % 2 else literal(piece) for index, piece in enumerate(pieces)
        )


def command_line(
    server: str, tool: Tool, arguments: Mapping[str, Any], mask: Mask, config: Path | None = None
) -> CallCopy:
    """``mcphost call …`` for a shell; ``server`` is what the command line takes for one.

    Raises NotDone for what a command line cannot hold.
    """
    for word in (server, tool.name):
        if not word.isprintable() or word.startswith("-"):
            raise NotDone("a name that begins with - or holds invisible characters cannot be typed")
    if not _is_unicode(arguments):
        raise NotDone("an argument holds half a character, which a command line cannot hold")
    secrets = _Variables(mask)
    hidden: dict[str, Any] = secrets.hide(arguments, "argument")
    words = ["mcphost", "call", *(["--config", str(config)] if config else []), server, tool.name]
    if all(_is_key(name) for name in hidden):
        words += [_pair(name, value, tool.input_schema) for name, value in hidden.items()]
    else:
        words += [f"{ARGUMENTS}={visible_json(hidden)}"]
    return secrets.finished(CopyKind.COMMAND, " ".join(map(secrets.quoted, words)))


def json_rpc(request: Request, mask: Mask) -> CallCopy:
    """The request in one line, as it goes out; its metadata is that of the session."""
    secrets = _Variables(mask)
    return secrets.finished(CopyKind.JSON_RPC, secrets.plain(_body(request, secrets)))


def curl(
    config: ServerConfig,
    request: Request,
    headers: Mapping[str, str],
    mask: Mask,
    *,
    version: str,
    session: bool = False,
    signed: bool = False,
    bound: bool = False,
) -> CallCopy:
    """A command that sends the request over Streamable HTTP.

    ``headers`` are those that the revision demands of the request; ``session``: the server has sessions; ``signed``:
    mcphost signed in to it; ``bound``: by a token that counts only with a proof, which each request needs of its own.
    """
    secrets = _Variables(mask)
    sent = {**HEADERS, "MCP-Protocol-Version": version, **headers}
    sent = {name: _hidden_header(name, value, secrets) for name, value in sent.items()}
    if session:
        sent[SESSION_HEADER] = secrets.put(SESSION_HEADER, SESSION_HEADER)
    sent |= dict(_own_headers(config, secrets))
    if signed and config.signs_in:
        sent["Authorization"] = f"{'DPoP' if bound else 'Bearer'} {secrets.put('TOKEN', 'TOKEN')}"
        if bound:
            sent["DPoP"] = secrets.put("PROOF", "PROOF")
    lines = [f"curl -N {secrets.quoted(secrets.hide_parts(config.url or '', 'SECRET'))}"]
    lines += [f"  -H {secrets.quoted(f'{name}: {value}')}" for name, value in sent.items()]
    lines += [f"  --data-raw {secrets.quoted(_body(request, secrets))}"]
    return secrets.finished(CopyKind.CURL, " \\\n".join(lines))


def rule(server: str, tool: Tool, arguments: Mapping[str, Any], mask: Mask) -> CallCopy:
    """A table for the configuration: calls like this run without asking, or the destructive tool asks in any case.

    Raises NotDone for a name that no file can hold.
    """
    texts = {name: text for name, text in arguments.items() if isinstance(text, str) and text and mask(text) == text}
    when = {name: suggested(text) for name, text in texts.items()}
    entry: dict[str, Any]
    if "destructive" in tool.claims:
        entry = {"approval": "ask"}
    elif when and not problem(when) and fits(when, texts):
        entry = {"allow_when": when}
    else:
        entry = {"approval": "allow"}
    if not _is_unicode(tool.name):
        raise NotDone("the tool's name holds half a character, which no file can hold")
    written = servers_toml({server: {"tools": {tool.name: entry}}})
    return _Variables(mask).finished(CopyKind.RULE, "".join(map(_visible_in_toml, written)))


class CallCopies:
    """Writes calls of the present servers."""

    def __init__(self, servers: Servers, catalog: Catalog, traffic: TrafficBook, mask: Mask) -> None:
        self._servers, self._catalog, self._traffic, self._mask = servers, catalog, traffic, mask

    def of(
        self, server: str, tool: str, arguments: Mapping[str, Any], config: Path | None, *, demo: bool = False
    ) -> list[CallCopy]:
        """All copies of a call; ``config`` is the file that its command line has to name.

        The ``demo`` has no entry anywhere, and is named by its command. Raises UnknownName.
        """
        settings, found = self._servers[server].config, self._catalog.tool(server, tool)
        typed = f"stdio:{shlex.join([settings.command or '', *settings.args])}" if demo else server

        def attempt(kind: CopyKind) -> CallCopy:
            match kind:
                case CopyKind.COMMAND:
                    return command_line(typed, found, arguments, self._mask, config)
                case CopyKind.JSON_RPC:
                    return json_rpc(self._request(server, tool, arguments)[0], self._mask)
                case CopyKind.CURL:
                    return self._curl(server, settings, tool, arguments)
                case CopyKind.RULE:
                    return rule(server, found, arguments, self._mask)

        copies = []
        for kind in CopyKind:
            try:
                copies.append(attempt(kind))
            except McphostError as error:
                copies.append(CallCopy(kind, "", problem=str(error)))
        return copies

    def _request(self, server: str, tool: str, arguments: Mapping[str, Any]) -> tuple[Request, Mapping[str, str], str]:
        """The request, its headers and the protocol version. Raises ServerNotReady, or as the session's rules do."""
        client = self._servers[server].client
        params = {"name": tool, "arguments": dict(arguments)}
        request, headers = client.written("tools/call", params)
        return request, headers, client.open_session.revision.version

    def _curl(self, server: str, config: ServerConfig, tool: str, arguments: Mapping[str, Any]) -> CallCopy:
        if config.url is None:
            raise NotDone("only for servers with an address")
        request, headers, version = self._request(server, tool, arguments)
        if config.transport == "sse" or version == SSE_ONLY:
            raise NotDone("HTTP+SSE needs an open stream beside each request")
        sent = self._newest_headers(server)
        session, signed, bound = (name in sent for name in (SESSION_HEADER.lower(), "authorization", "dpop"))
        return curl(config, request, headers, self._mask, version=version, session=session, signed=signed, bound=bound)

    def _newest_headers(self, server: str) -> frozenset[str]:
        """The names of the headers of the last HTTP request to the server, in lower case."""
        newest = reversed(self._traffic.since(max(0, self._traffic.newest - SEARCHED)))
        head = next((each for each in newest if each.server == server and each.sent and each.note == "http"), None)
        lines = head.raw().splitlines()[1:] if head is not None else ()
        return frozenset(line.partition(":")[0].lower() for line in lines)


def visible_json(value: Any) -> str:
    """A value in one line of JSON, with escapes for what cannot be seen."""
    written = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in written)


def _visible_in_toml(character: str) -> str:
    return character if character.isprintable() or character == "\n" else f"\\U{ord(character):08x}"


def _hidden_header(name: str, value: str, secrets: _Variables) -> str:
    """The value, or a variable if the argument that it repeats holds a secret, which may be encoded in it."""
    repeats = name.startswith(PARAMETER_PREFIX)
    argument = decode_header_value(value) if repeats else value
    hidden: str = secrets.hide(argument, name)
    return value if hidden == argument else hidden


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_key(name: str) -> bool:
    """True if the command line reads this name as the key of a pair."""
    return bool(name) and name.isprintable() and "=" not in name and not name.startswith("-") and name[-1] != ":"


def _pair(name: str, value: Any, schema: Mapping[str, Any]) -> str:
    """The argument as the command line reads it: a text, or any JSON."""
    properties = schema.get("properties")
    part = properties.get(name) if isinstance(properties, Mapping) else None
    is_text = not isinstance(part, Mapping) or part.get("type") == "string"
    if isinstance(value, str) and is_text and value.isprintable():
        return f"{name}={value}"
    return f"{name}:={visible_json(value)}"


def _body(request: Request, secrets: _Variables) -> str:
    params = secrets.hide(dict(request.params or {}), "argument")
    return visible_json({"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": params})


def _own_headers(config: ServerConfig, secrets: _Variables) -> Iterator[tuple[str, str]]:
    """The headers of the server's entry, and the authorization; values that may be secret are variables."""
    for name, value in config.http_headers.items():
        written = secrets.hide_parts(value, name)
        if written == value and is_secret_header(name):
            scheme, blank, rest = value.partition(" ")
            written = f"{scheme}{blank}{secrets.put(name, rest)}" if rest else secrets.put(name, value)
        yield name, written
    for name, variable in config.env_http_headers.items():
        yield name, secrets.put(variable, variable)
    if (bearer := config.bearer_token_env_var) is not None:
        yield "Authorization", f"Bearer {secrets.put(bearer, bearer)}"
