"""Opens sessions with a server, reads all that it declares, and sends a bounded set of harmless probes.

No probe calls a tool, reads a file or a resource that exists, or changes anything outside its session. A probe that
hangs costs its deadline; the rest goes on in a fresh session.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from mcphost.errors import McphostError
from mcphost.host.server_rules.ports import ProbeTarget
from mcphost.host.server_rules.sessions import ChannelSession, HttpSession, ProbeSession
from mcphost.host.server_rules.sighting import LISTS, ProbeExchange, ReceivedMessage, Sighting, Unjudged
from mcphost.json_values import as_dict, as_list, dicts_in
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import (
    DIRECTORY_READ,
    HANDSHAKE_REVISIONS,
    META_PREFIX,
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    Revision,
    find_revision,
)
from mcphost.protocol.lifecycle.session import NAMED_BY
from mcphost.protocol.wire.headers import encode_header_value

NOWHERE: Final = "mcphost-check-no-such-name"
"""The name of no tool, prompt, task or cursor."""

NO_URI: Final = "mcphost-check://nowhere/no-such-resource"
NO_SKILL: Final = "skill://mcphost-check-no-such-skill/SKILL.md"
NO_VERSION: Final = "1999-01-01"
FOREIGN: Final = "http://foreign.example"

PAGES: Final = 50
"""Pages of a list that are followed."""

REOPENINGS: Final = 4
"""Fresh sessions after probes that hang."""

MODERN_ERRORS: Final = (-32020, -32021, -32022)

Progress = Callable[[str], None]
"""Takes what is done now, as a short clause."""


class NotSpoken(Exception):
    """The server does not speak the era; ``str()`` is its answer, as a clause."""


class Prober:
    """Probes one server over one transport."""

    def __init__(self, target: ProbeTarget, transport: str, identity: Mapping[str, str], progress: Progress) -> None:
        self._target, self._transport, self._identity, self._progress = target, transport, identity, progress
        self._next_id, self._sessions = 0, 0
        self._seen = Sighting(transport, NEWEST_MODERN)
        self._session: ProbeSession | None = None
        self._reopened = 0

    async def legacy(self) -> Sighting:
        """Look at the server in sessions that ``initialize`` opens. Raises NotSpoken, and TransportError at first."""
        self._begin(NEWEST_HANDSHAKE)
        try:
            await self._initialized("initialize")
            await self._probe("early-ping", "ping")
            await self._introduced()
            await self._list_all()
            for probes in (self._common, self._legacy_only, self._legacy_http, self._broken):
                await probes()
            await self._end()
            await self._other_versions()
        finally:
            await self._drop()
        return self._seen

    async def modern(self) -> Sighting:
        """Look at the server without a handshake. Raises as `legacy`."""
        self._begin(NEWEST_MODERN)
        try:
            await self._discovered()
            await self._list_all()
            for probes in (self._common, self._modern_only, self._listen, self._modern_http, self._broken):
                await probes()
            await self._end()
            await self._second_connection()
        finally:
            await self._drop()
        return self._seen

    # Sessions

    def _begin(self, revision: Revision) -> None:
        self._seen = Sighting(self._transport, revision, loopback=self._target.loopback)
        self._reopened = 0

    async def _open(self) -> ProbeSession:
        self._sessions += 1
        if self._transport == "http":
            traffic = self._target.traffic()
            client, seconds = self._target.http(traffic), self._target.opening_seconds
            self._session = HttpSession(self._seen, self._sessions, client, traffic, seconds)
            return self._session
        session = ChannelSession(
            self._seen,
            self._sessions,
            self._target.channel,
            self._target.traffic(),
            self._target.opening_seconds,
        )
        self._session = session
        await session.open()
        return session

    async def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()

    async def _end(self) -> None:
        """Close the main session; over stdio, see how the process ends."""
        if self._session is not None and self._transport == "stdio":
            loop = asyncio.get_running_loop()
            began = loop.time()
            await self._drop()
            self._seen.exit_seconds = loop.time() - began
        await self._drop()

    async def _ready(self) -> ProbeSession | None:
        """The session, a fresh one if the last was lost; None if that happened too often."""
        if self._session is not None:
            return self._session
        if self._reopened >= REOPENINGS:
            return None
        self._reopened += 1
        try:
            await self._open()
            if not self._seen.revision.modern:
                await self._initialized(f"initialize again {self._reopened}")
                await self._introduced(again=True)
        except (McphostError, NotSpoken):
            await self._drop()
        return self._session

    # Messages

    def _request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._next_id += 1
        self._seen.sent_ids.add((int, self._next_id))
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if self._seen.revision.modern:
            params = {**(params or {}), "_meta": self._meta()}
        return message if params is None else {**message, "params": dict(params)}

    def _meta(self, **changes: Any) -> dict[str, Any]:
        """The metadata of a modern request; a change to None leaves a member out."""
        whole = {
            "protocolVersion": self._seen.revision.version,
            "clientInfo": dict(self._identity),
            "clientCapabilities": {},
            **changes,
        }
        return {f"{META_PREFIX}{name}": value for name, value in whole.items() if value is not None}

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """The headers that a modern request owes."""
        if self._transport != "http" or not self._seen.revision.modern:
            return {}
        params = as_dict(message.get("params"))
        version = as_dict(params.get("_meta")).get(f"{META_PREFIX}protocolVersion", self._seen.revision.version)
        headers = {"MCP-Protocol-Version": str(version), "Mcp-Method": str(message["method"])}
        named = params.get(NAMED_BY.get(str(message["method"]), ""))
        return {**headers, "Mcp-Name": encode_header_value(named)} if isinstance(named, str) else headers

    async def _probe(
        self,
        probe: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        until: Callable[[ReceivedMessage], bool] | None = None,
    ) -> ProbeExchange:
        """Send a request and keep its exchange. ``meta`` replaces the metadata; ``headers`` change single ones."""
        message = self._request(method, params)
        if meta is not None and self._seen.revision.modern:
            message["params"]["_meta"] = dict(meta)
        return await self._send(probe, message, {**self._headers(message), **(headers or {})}, until)

    async def _send(
        self,
        probe: str,
        message: Mapping[str, Any] | bytes,
        headers: Mapping[str, str],
        until: Callable[[ReceivedMessage], bool] | None = None,
    ) -> ProbeExchange:
        session = await self._ready()
        if session is None:
            return ProbeExchange(probe, lost="the server hung too often")
        self._progress(probe)
        exchange = await session.ask(probe, message, headers, until)
        self._seen.exchanges[probe] = exchange
        if exchange.seconds or exchange.lost:
            self._seen.hung.append(probe)
            if self._transport != "http":
                await self._drop()
        return exchange

    async def _tell(self, probe: str, method: str, params: Mapping[str, Any] | None = None) -> ProbeExchange:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if self._seen.revision.modern:
            params = {**(params or {}), "_meta": self._meta()}
        message = message if params is None else {**message, "params": dict(params)}
        return await self._send(probe, message, self._headers(message))

    async def _http(self, probe: str, method: str, headers: Mapping[str, str]) -> ProbeExchange | None:
        session = await self._ready()
        if not isinstance(session, HttpSession):
            return None
        self._progress(probe)
        exchange = await session.send(probe, method, {**session.headers, **headers})
        self._seen.exchanges[probe] = exchange
        return exchange

    # Opening

    async def _initialized(self, probe: str, version: str = NEWEST_HANDSHAKE.version) -> None:
        session = self._session or await self._open()
        if isinstance(session, HttpSession):
            session.headers = {}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": dict(self._identity)}
        exchange = await session.ask(probe, self._request("initialize", params))
        self._seen.exchanges[probe] = exchange
        result = exchange.result
        if result is None or find_revision(result.get("protocolVersion")) is NEWEST_MODERN:
            raise NotSpoken(f"initialize: {_words(exchange)}")
        agreed = find_revision(result.get("protocolVersion"))
        if agreed is not None:
            self._seen.revision = agreed
        if probe == "initialize":
            self._seen.capabilities = as_dict(result.get("capabilities"))
        if isinstance(session, HttpSession):
            given = exchange.headers.get("mcp-session-id", "")
            if given:
                self._seen.session_ids.append(given)
            usable = given.isascii() and given.isprintable()
            session.headers = {"Mcp-Session-Id": given if usable else ""}
            session.headers["MCP-Protocol-Version"] = str(result.get("protocolVersion", ""))

    async def _introduced(self, *, again: bool = False) -> None:
        await self._tell("initialized again" if again else "initialized", "notifications/initialized")

    async def _discovered(self) -> None:
        session = await self._open()
        message = self._request("server/discover")
        exchange = await session.ask("discover", message, self._headers(message))
        self._seen.exchanges["discover"] = exchange
        result = exchange.result
        if exchange.code in MODERN_ERRORS:
            return
        if result is None or NEWEST_MODERN.version not in as_list(result.get("supportedVersions")):
            raise NotSpoken(f"server/discover: {_words(exchange)}")
        self._seen.capabilities = as_dict(result.get("capabilities"))

    # Probes of both eras

    def _declares(self, method: str) -> bool:
        if method.startswith("skills/"):
            return self._seen.offers(SKILLS_EXTENSION)
        return method.partition("/")[0] in self._seen.capabilities

    async def _list_all(self) -> None:
        for method in LISTS:
            if not self._declares(method):
                if method not in ("resources/templates/list", "skills/list"):
                    await self._probe(f"undeclared-{method}", method)
                continue
            self._seen.pages[method] = await self._walk(method)

    async def _walk(self, method: str) -> list[ProbeExchange]:
        pages: list[ProbeExchange] = []
        cursors: list[Any] = [None]
        meta = self._meta_for_skills if method.startswith("skills/") else None
        while len(pages) < PAGES:
            cursor = cursors[-1]
            name = f"{method} {len(pages) + 1}"
            page = await self._probe(name, method, None if cursor is None else {"cursor": cursor}, meta=meta)
            self._seen.exchanges.pop(name, None)
            pages.append(page)
            found = (page.complete or {}).get("nextCursor")
            if not isinstance(found, str) or found in cursors:
                break
            cursors.append(found)
        if len(cursors) > 1 and "same-cursor" not in self._seen.exchanges:
            await self._probe("same-cursor", method, {"cursor": cursors[1]}, meta=meta)
        return pages

    @property
    def _meta_for_skills(self) -> Mapping[str, Any]:
        """The metadata of a client that declares the extension, which a server may demand."""
        return self._meta(clientCapabilities={"extensions": {SKILLS_EXTENSION: {}}})

    async def _common(self) -> None:
        """The probes that both eras share."""
        await self._probe("unknown-method", "mcphost-check/no-such-method")
        paging = [method for method, pages in self._seen.pages.items() if len(pages) > 1]
        if paging:
            await self._probe("bad-cursor", paging[0], {"cursor": NOWHERE})
        if self._declares("tools/call"):
            await self._probe("unknown-tool", "tools/call", {"name": NOWHERE, "arguments": {}})
            await self._probe("nameless-tool", "tools/call", {"arguments": {}})
        if self._declares("resources/read"):
            await self._probe("unknown-resource", "resources/read", {"uri": NO_URI})
            await self._probe("malformed-uri", "resources/read", {"uri": "::not a uri::"})
            await self._probe("resource-without-uri", "resources/read", {})
        if self._declares("prompts/get"):
            await self._probe("unknown-prompt", "prompts/get", {"name": NOWHERE})
            await self._probe("nameless-prompt", "prompts/get", {})
            if needy := self._prompt(required=True):
                await self._probe("prompt-without-argument", "prompts/get", {"name": needy["name"], "arguments": {}})
        await self._completion()
        await self._skills()

    def _prompt(self, *, required: bool) -> Mapping[str, Any] | None:
        """A prompt with an argument, or with one that must be given."""
        pages = self._seen.pages.get("prompts/list", [])
        prompts = [each for page in pages for each in dicts_in((page.complete or {}).get("prompts"))]
        return next(
            (
                prompt
                for prompt in prompts
                if isinstance(prompt.get("name"), str)
                and any(
                    isinstance(each.get("name"), str) and (not required or each.get("required") is True)
                    for each in dicts_in(prompt.get("arguments"))
                )
            ),
            None,
        )

    async def _skills(self) -> None:
        """Ask for one entry, and list its folder; no file is read."""
        if not self._declares("skills/get"):
            return
        meta = self._meta_for_skills
        await self._probe("unknown-skill", "skills/get", {"uri": NO_SKILL}, meta=meta)
        listed = [each for page in self._seen.pages.get("skills/list", []) for each in _skill_uris(page)]
        if listed:
            await self._probe("skill", "skills/get", {"uri": listed[0]}, meta=meta)
        settings = as_dict(as_dict(self._seen.capabilities.get("extensions")).get(SKILLS_EXTENSION))
        if settings.get(DIRECTORY_READ) is True:
            method = "resources/directory/read"
            await self._probe("unknown-folder", method, {"uri": NO_SKILL.rpartition("/")[0]}, meta=meta)
            if listed:
                await self._probe("folder", method, {"uri": listed[0].rpartition("/")[0]}, meta=meta)
                await self._probe("file-as-folder", method, {"uri": listed[0]}, meta=meta)

    async def _completion(self) -> None:
        argument = {"name": "name", "value": ""}
        unknown = {"ref": {"type": "ref/prompt", "name": NOWHERE}, "argument": argument}
        if "completions" not in self._seen.capabilities:
            await self._probe("undeclared-completion", "completion/complete", unknown)
            return
        await self._probe("completion-of-unknown-prompt", "completion/complete", unknown)
        await self._probe("completion-without-argument", "completion/complete", {"ref": unknown["ref"]})
        if prompt := self._prompt(required=False):
            ref = {"type": "ref/prompt", "name": prompt["name"]}
            named = {"name": dicts_in(prompt["arguments"])[0].get("name", ""), "value": ""}
            await self._probe("completion", "completion/complete", {"ref": ref, "argument": named})

    async def _broken(self) -> None:
        """Send texts that are not requests, each followed by a request that a living server answers."""
        alive = "server/discover" if self._seen.revision.modern else "ping"
        headers = self._headers({"method": alive})
        await self._tell("cancelled-unknown", "notifications/cancelled", {"requestId": 999_999_999})
        await self._tell("cancelled-malformed", "notifications/cancelled", {"reason": "none"})
        await self._probe("after-cancelled", alive)
        await self._send("not-a-request", b'{"jsonrpc":"2.0","odd":true}', headers)
        await self._probe("after-not-a-request", alive)
        await self._send("not-json", b'{"jsonrpc":"2.0","id":', headers)
        await self._probe("after-not-json", alive)

    # Probes of one era

    async def _legacy_only(self) -> None:
        await self._probe("ping", "ping")
        if self._declares("logging/setLevel"):
            await self._probe("log-level", "logging/setLevel", {"level": "warning"})
            await self._probe("bad-log-level", "logging/setLevel", {"level": "mcphost-check"})
        if self._seen.offers("resources.subscribe"):
            listed = [as_dict(page.complete).get("resources") for page in self._seen.pages.get("resources/list", [])]
            uris = [each.get("uri") for page in listed for each in dicts_in(page)]
            if uris and isinstance(uris[0], str):
                await self._probe("subscribe", "resources/subscribe", {"uri": uris[0]})
                await self._probe("unsubscribe", "resources/unsubscribe", {"uri": uris[0]})
        if "tasks" in self._seen.capabilities:
            await self._probe("unknown-task", "tasks/get", {"taskId": NOWHERE})
        if self._seen.offers("tasks.list"):
            await self._probe("bad-task-cursor", "tasks/list", {"cursor": NOWHERE})

    async def _other_versions(self) -> None:
        """Ask for revisions that the server lacks, and again for the one that it offered."""
        if not await self._asked_for("initialize-unknown", NO_VERSION):
            return
        offered = as_dict(self._seen.exchanges["initialize-unknown"].result).get("protocolVersion")
        agreed = as_dict(self._seen.exchanges["initialize"].result).get("protocolVersion")
        again = {str(version) for version in (offered, agreed)} - {NEWEST_HANDSHAKE.version, "None"}
        for version in sorted(again & {each.version for each in HANDSHAKE_REVISIONS})[:1]:
            await self._asked_for("initialize-offered", version)

    async def _asked_for(self, probe: str, version: str) -> bool:
        try:
            session = await self._open()
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": dict(self._identity)}
            message = self._request("initialize", params)
            self._seen.exchanges[probe] = exchange = await session.ask(probe, message)
            if given := exchange.headers.get("mcp-session-id"):
                self._seen.session_ids.append(given)
                ending = {"Mcp-Session-Id": given, "MCP-Protocol-Version": self._seen.revision.version}
                await self._http("ending", "DELETE", ending)
            return exchange.result is not None
        except McphostError:
            return False
        finally:
            await self._drop()

    async def _legacy_http(self) -> None:
        session = await self._ready()
        if not isinstance(session, HttpSession):
            return
        await self._probe("no-version-header", "ping", headers={"MCP-Protocol-Version": ""})
        await self._probe("bad-version-header", "ping", headers={"MCP-Protocol-Version": NO_VERSION})
        if self._target.loopback:
            await self._probe("foreign-origin", "ping", headers={"Origin": FOREIGN})
        await self._http("get", "GET", {"Accept": "text/event-stream"})
        if session.headers.get("Mcp-Session-Id"):
            await self._probe("without-session", "ping", headers={"Mcp-Session-Id": ""})
            await self._http("delete", "DELETE", {})
            await self._probe("after-delete", "ping")
            with suppress(NotSpoken):
                await self._initialized("initialize once more")
                await self._introduced(again=True)

    async def _modern_only(self) -> None:
        discover = "server/discover"
        await self._probe("no-version", discover, meta=self._meta(protocolVersion=None))
        await self._probe("no-capabilities", discover, meta=self._meta(clientCapabilities=None))
        await self._probe("no-client-info", discover, meta=self._meta(clientInfo=None))
        # A request for a list: an answer to a discovery in an unknown version may be meant to help.
        listing = next((method for method in LISTS if self._declares(method)), discover)
        await self._probe("unknown-version", listing, meta=self._meta(protocolVersion=NO_VERSION))
        await self._probe("bad-log-level", discover, meta=self._meta(logLevel="mcphost-check"))
        await self._probe("removed-ping", "ping")
        await self._probe("removed-logging", "logging/setLevel", {"level": "warning"})
        await self._probe("removed-subscribe", "resources/subscribe", {"uri": NO_URI})
        if TASKS_EXTENSION in as_dict(self._seen.capabilities.get("extensions")):
            declared = self._meta(clientCapabilities={"extensions": {TASKS_EXTENSION: {}}})
            await self._probe("unknown-task", "tasks/get", {"taskId": NOWHERE}, meta=declared)
            await self._probe("unknown-task-cancel", "tasks/cancel", {"taskId": NOWHERE}, meta=declared)
            await self._probe("task-undeclared", "tasks/get", {"taskId": NOWHERE})
            await self._probe("removed-task-result", "tasks/result", {"taskId": NOWHERE}, meta=declared)

    async def _listen(self) -> None:
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
        exchange = await self._probe(
            "listen", "subscriptions/listen", {"notifications": wanted}, until=lambda message: message.is_notification
        )
        if self._transport != "http" and exchange.response is None:
            await self._tell("listen-cancelled", "notifications/cancelled", {"requestId": exchange.sent.get("id")})

    async def _modern_http(self) -> None:
        session = await self._ready()
        if not isinstance(session, HttpSession):
            return
        discover = "server/discover"
        await self._probe("no-version-header", discover, headers={"MCP-Protocol-Version": ""})
        await self._probe("wrong-version-header", discover, headers={"MCP-Protocol-Version": "2025-11-25"})
        await self._probe("no-method-header", discover, headers={"Mcp-Method": ""})
        await self._probe("wrong-method-header", discover, headers={"Mcp-Method": "tools/list"})
        await self._probe("method-header-in-capitals", discover, headers={"Mcp-Method": "SERVER/DISCOVER"})
        await self._probe("session-header", discover, headers={"Mcp-Session-Id": NOWHERE})
        await self._probe("resuming-header", discover, headers={"Last-Event-ID": NOWHERE})
        if self._target.loopback:
            await self._probe("foreign-origin", discover, headers={"Origin": FOREIGN})
        if named := self._named():
            method, params = named
            encoded = f"=?base64?{b64encode(next(iter(params.values())).encode()).decode()}?="
            await self._probe("no-name-header", method, params, headers={"Mcp-Name": ""})
            await self._probe("wrong-name-header", method, params, headers={"Mcp-Name": "another"})
            await self._probe("encoded-name-header", method, params, headers={"Mcp-Name": encoded})
        await self._http("get", "GET", {"Accept": "text/event-stream"})
        await self._http("delete", "DELETE", {})

    def _named(self) -> tuple[str, Mapping[str, str]] | None:
        """A request for what cannot exist, with the parameter that a header repeats."""
        for method, params in (
            ("tools/call", {"name": NOWHERE}),
            ("prompts/get", {"name": NOWHERE}),
            ("resources/read", {"uri": NO_URI}),
        ):
            if self._declares(method):
                return method, params
        return None

    async def _second_connection(self) -> None:
        """The same lists on a fresh connection, without a discovery before; then ``initialize``."""
        try:
            await self._open()
        except McphostError:
            return
        for method in LISTS:
            if self._declares(method):
                meta = self._meta_for_skills if method.startswith("skills/") else None
                await self._probe(f"again-{method}", method, meta=meta)
        params = {"protocolVersion": NEWEST_HANDSHAKE.version, "capabilities": {}, "clientInfo": dict(self._identity)}
        if (session := await self._ready()) is not None:
            self._next_id += 1
            self._seen.sent_ids.add((int, self._next_id))
            message = {"jsonrpc": "2.0", "id": self._next_id, "method": "initialize", "params": params}
            exchange = await session.ask("initialize-modern", message)
            self._seen.exchanges["initialize-modern"] = exchange
            if (given := exchange.headers.get("mcp-session-id")) and isinstance(session, HttpSession):
                await session.send("ending", "DELETE", {"Mcp-Session-Id": given})
        await self._drop()


def _skill_uris(page: ProbeExchange) -> list[str]:
    """The URIs on a page of skills."""
    return [each["uri"] for each in dicts_in((page.complete or {}).get("skills")) if isinstance(each.get("uri"), str)]


def _words(exchange: ProbeExchange) -> str:
    try:
        return exchange.outcome()
    except Unjudged as unjudged:
        return str(unjudged)
