"""The requests of agents that need no question: resources, prompts and completions, raw in both directions.

Specification: server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcphost.client.client import Client
from mcphost.client.requests import ProgressCallback
from mcphost.config import entry_of
from mcphost.errors import CapabilityMissing, McphostError, MethodRemoved, ServerError
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.servers import Servers
from mcphost.host.endpoint.exposure import Exposure
from mcphost.host.endpoint.metadata import to_server
from mcphost.host.endpoint.names import Origin
from mcphost.host.endpoint.questions import AgentQuestions
from mcphost.host.endpoint.results import LargeResults
from mcphost.host.endpoint.translation import Translation, of_this_leg
from mcphost.host.tool_calls.current import AskedAgent, current_agent
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.prompts import Prompt
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError
from mcphost.serving.served_request import Json, ServedRequest

Result = Mapping[str, Any]

_REF_MEMBERS: Final = {"ref/prompt": "name", "ref/resource": "uri"}


@dataclass(frozen=True, slots=True)
class EndpointRequestContext:
    """The services that the requests of a session use."""

    servers: Servers
    audited: AuditedRequests
    agent: Callable[[], AgentFacts]
    exposure: Callable[[], Exposure]
    results: LargeResults
    lease: Callable[[str], Awaitable[str]]
    """Returns the running server of an entry that the session uses."""
    listed: Callable[[CatalogKind], Awaitable[None]]
    """Waits for the servers' lists of a kind, for some seconds."""
    translation: Callable[[str, ServedRequest], Translation]
    """Returns the translation from this server."""
    withheld: Callable[[str, Skill], str | None]
    """Returns why an agent does not get a skill of an entry, as a clause; empty if it does, None for an unknown one."""
    questions: Callable[[str, ServedRequest], AgentQuestions]
    """Returns the agent's answers to what the server of an entry asks in a request."""


class EndpointRequests:
    """Reads resources, gets prompts and completes arguments for one session. Methods raise RpcError, McphostError."""

    def __init__(self, context: EndpointRequestContext) -> None:
        self._context = context

    async def read(self, request: ServedRequest) -> Result:
        exposed = _text(request.params, "uri")
        if (kept := self._context.results.read(exposed)) is not None:
            return kept
        entry, _ = self.resource(exposed)
        if self._context.exposure().serves(entry, "skills/list") and not self._context.exposure().lists_skills(entry):
            await self._context.listed(CatalogKind.SKILLS)  # they say which files are held back
        entry, uri = self.resource(exposed)
        server = await self._context.lease(entry)
        record = {"event": "resource", "uri": uri}
        result = await self._send(request, server, record, uri, {"uri": uri})
        uris = self._context.exposure().uris
        return _renamed(uris.in_result(entry, of_this_leg(result)), uris.of(entry, uri), exposed)

    async def skill(self, request: ServedRequest) -> Result:
        """The entry of one skill, listed or not."""
        exposed = _text(request.params, "uri")
        entry, uri = self._of_skills(exposed, "skills/get")
        server = await self._context.lease(entry)
        record = {"event": "request", "method": request.method, "params": {"uri": uri}}
        result = of_this_leg(await self._send(request, server, record, uri, {"uri": uri}))
        skill = Skill.read(result.get("skill"))
        if (why := self._context.withheld(entry, skill)) is None:
            raise _unknown_skill(exposed)
        if why:
            raise InvalidParamsError(f"mcphost holds this skill back: {why}")
        uris = self._context.exposure().uris
        shown = uris.in_skill(entry, skill.definition())
        return {**result, "skill": {**shown, "uri": exposed} if uri == skill.uri else shown}

    async def folder(self, request: ServedRequest) -> Result:
        """The children of a folder of a skill."""
        exposed = _text(request.params, "uri")
        entry, uri = self._of_skills(exposed, "resources/directory/read")
        if self._context.exposure().skill_files(entry).why_folder(uri) != "":
            raise _unknown_skill(exposed)
        server = await self._context.lease(entry)
        params = {"uri": uri, **{name: request.params[name] for name in ("cursor",) if name in request.params}}
        record = {"event": "request", "method": request.method, "params": params}
        result = of_this_leg(await self._send(request, server, record, uri, params))
        files = self._context.exposure().skill_files(entry)
        if isinstance(children := result.get("resources"), list):
            shown = [each for each in children if files.why_folder(str(as_dict(each).get("uri"))) == ""]
            result = {**result, "resources": shown}
        return self._context.exposure().uris.in_folder(entry, result)

    def _of_skills(self, exposed: str, method: str) -> Origin:
        """The entry and the URI there, if the server of that entry has this method. Raises RpcError."""
        found = self._context.exposure().uris.find(exposed)
        if found is None or not self._context.exposure().serves(found[0], method):
            raise _unknown_skill(exposed)
        return found

    async def prompt(self, request: ServedRequest) -> Result:
        name = _text(request.params, "name")
        entry, prompt = await self._prompt(name)
        server = await self._context.lease(entry)
        given = {key: request.params[key] for key in ("arguments",) if key in request.params}
        record = {"event": "prompt", "prompt": prompt.name, **given}
        params = {"name": prompt.name, **given}
        result = of_this_leg(await self._send(request, server, record, prompt.name, params, prompt.received))
        return self._context.exposure().uris.in_result(entry, self._context.translation(server, request).prompt(result))

    async def complete(self, request: ServedRequest) -> Result:
        ref = as_dict(request.params.get("ref"))
        member = _REF_MEMBERS.get(str(ref.get("type")))
        if member is None:
            raise InvalidParamsError("ref names neither a prompt nor a resource.")
        exposed = _text(ref, member)
        if member == "uri":
            entry, name = self.resource(exposed)
        else:
            entry, prompt = await self._prompt(exposed)
            name = prompt.name
        server = await self._context.lease(entry)
        connection = self._context.servers[server]
        params = {**_without_meta(request.params), "ref": {**ref, member: name}}
        client = await connection.reach()
        if not client.open_session.revision.completion_context:
            params.pop("context", None)
        try:
            return of_this_leg(
                await self._context.audited.repeat(
                    connection, "completion", lambda: connection.client.request(request.method, params)
                )
            )
        except McphostError as error:
            raise self._failure(request, server, error) from None

    async def _prompt(self, exposed: str) -> tuple[str, Prompt]:
        """The entry of a prompt, and the prompt. Raises RpcError."""
        if (found := self._context.exposure().prompt(exposed)) is None:
            await self._context.listed(CatalogKind.PROMPTS)
            found = self._context.exposure().prompt(exposed)
        if found is None:
            raise InvalidParamsError(f"Unknown prompt: {exposed[:200]}")
        return found

    def resource(self, exposed: str) -> tuple[str, str]:
        """The entry of a resource, and its URI there. Raises RpcError."""
        if (found := self._context.exposure().uris.find(exposed)) is None:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "Resource not found", {"uri": exposed})
        if why := self._context.exposure().skill_files(found[0]).why(found[1]):
            raise InvalidParamsError(f"mcphost holds the skill of this file back: {why}")
        if why is None:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "Resource not found", {"uri": exposed})
        return found

    async def _send(
        self,
        request: ServedRequest,
        server: str,
        record: Mapping[str, Any],
        operation: str,
        params: Json,
        definition: Mapping[str, Any] | None = None,
    ) -> Result:
        questions = self._context.questions(entry_of(server), request)
        questions.request = request
        agent, given = self._context.agent(), as_dict(request.params.get("_meta"))
        if meta := to_server(given, definition or {}):
            params["_meta"] = meta
        report = _reporter(request) if "progressToken" in given else None

        current_agent.set(AskedAgent(questions, agent.origin))  # this task is the request's own

        def send(client: Client) -> Awaitable[Result]:
            return client.request(request.method, params, on_progress=report)

        try:
            return await self._context.audited.send(server, {**record, **agent.record}, operation, agent.origin, send)
        except McphostError as error:
            raise self._failure(request, server, error) from None

    def _failure(self, request: ServedRequest, server: str, error: McphostError) -> RpcError:
        failure = failure_of(error)
        return self._context.translation(server, request).error(request.method, failure)


def _unknown_skill(exposed: str) -> InvalidParamsError:
    return InvalidParamsError(f"Unknown skill or folder: {exposed[:200]}")


def _renamed(result: Result, uri: str, exposed: str) -> Result:
    """The result of a read, under the URI by which the agent asked."""
    contents = result.get("contents")
    if uri == exposed or not isinstance(contents, list):
        return result
    named = [{**each, "uri": exposed} if as_dict(each).get("uri") == uri else each for each in contents]
    return {**result, "contents": named}


def failure_of(error: McphostError) -> RpcError:
    """The error for an agent: the server's own, or in mcphost's words."""
    if isinstance(error, ServerError):
        return RpcError(error.code, error.message, error.data)
    missing = isinstance(error, CapabilityMissing | MethodRemoved)
    return RpcError(ErrorCode.METHOD_NOT_FOUND if missing else ErrorCode.INTERNAL_ERROR, f"mcphost: {error}")


def _reporter(request: ServedRequest) -> ProgressCallback:
    def report(progress: Progress) -> None:
        request.progress(progress_report(progress))

    return report


def progress_report(progress: Progress) -> Json:
    """The params of a notification of progress, without a token."""
    members = {"progress": progress.progress, "total": progress.total, "message": progress.message}
    return {name: value for name, value in members.items() if value is not None}


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str):
        raise InvalidParamsError(f"{name} is not a text.")
    return value


def _without_meta(params: Mapping[str, Any]) -> Json:
    return {name: value for name, value in params.items() if name != "_meta"}
