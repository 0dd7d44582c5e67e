"""``mcphost call``: one tool, run once, its result on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcphost.cli.failures import Broken, failure, why_unknown, with_last_words
from mcphost.cli.output import Exit, Outcome, StatusLine, exit_for, foreign, json_text, marked
from mcphost.cli.saving import files_in, write
from mcphost.errors import (
    ConfigError,
    ConnectionLost,
    InvalidArguments,
    McphostError,
    PeerError,
    RequestError,
    ServerNotReady,
    TransportError,
    UnknownName,
)
from mcphost.host.catalog import CatalogKind
from mcphost.host.events import CallChanged, Event
from mcphost.host.failure_advice import next_step
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.protocol.models.tools import (
    CallToolResult,
    Content,
    EmbeddedResource,
    MediaContent,
    Progress,
    ResourceContents,
    ResourceLink,
    TextContent,
    Tool,
    UnreadableContent,
)

MOST_BYTES: Final = 16_000_000
"""That ``--args -`` takes from stdin."""

_DEFINITIONS: Final = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """What was typed, before the tool is known: ``texts`` still want a type."""

    values: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def read_given(pairs: Sequence[str], whole: str | None) -> GivenArguments:
    """Take a command line apart. Raises InvalidArguments."""
    values: dict[str, Any] = {} if whole is None else _object(whole)
    texts: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.rstrip(":"):
            raise InvalidArguments([(pair, "is neither key=value nor key:=json")])
        name = key.removesuffix(":")
        if name in texts or (name in values and whole is None):
            raise InvalidArguments([(name, "is given twice")])
        values.pop(name, None)
        if key.endswith(":"):
            values[name] = _json(name, text)
        else:
            texts[name] = text
    return GivenArguments(values, texts)


def typed(given: GivenArguments, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each text as its property of ``schema`` wants it. Raises InvalidArguments with every mistake."""
    arguments = dict(given.values)
    problems: list[tuple[str, str]] = []
    for name, text in given.texts.items():
        part = _property(schema, name)
        if part is None or part.get("type") == "string":
            arguments[name] = text
        else:
            _add(arguments, problems, name, text, schema)
    if problems:
        raise InvalidArguments(problems)
    return arguments


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    properties = schema.get("properties")
    part = properties.get(name) if isinstance(properties, Mapping) else None
    return part if isinstance(part, Mapping) else None


def _add(
    arguments: dict[str, Any], problems: list[tuple[str, str]], name: str, text: str, schema: Mapping[str, Any]
) -> None:
    """Read ``text`` as a form would."""
    from mcphost.protocol.forms.form import (  # late: most arguments are text
        ABSENT,
        FieldError,
        FieldKind,
        parse,
        read_form,
    )

    # Of this one property, so that neither its many neighbours nor a combination of forms matter.
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    one = {"type": "object", "properties": {name: schema["properties"][name]}, **definitions}
    (field,) = read_form(one).fields or (None,)
    if field is None or field.kind in (FieldKind.STRING, FieldKind.TEXT):
        arguments[name] = text
        return
    try:
        value = parse(field, text)
    except FieldError as error:
        problems.append((name, f"{error}; {name}:=JSON takes any value"))
        return
    if value is ABSENT:
        problems.append((name, "has no value"))
    arguments[name] = value


def _object(text: str) -> dict[str, Any]:
    value = _json("--args", _piped() if text == "-" else text)
    if not isinstance(value, dict):
        raise InvalidArguments([("--args", "is not a JSON object")])
    return value


def _piped() -> str:
    try:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InvalidArguments([("--args -", f"stdin holds more than {size_text(MOST_BYTES)}")])
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArguments([("--args -", f"stdin cannot be read: {error}")]) from None


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise InvalidArguments([(name, "is nested too deeply")]) from None
    except ValueError as error:
        raise InvalidArguments([(name, f"is not JSON: {error}")]) from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


@dataclass(frozen=True, slots=True)
class CallRequested:
    """What is to be called. ``timeout`` in seconds without answer or progress; None: as configured."""

    server: str
    tool: str
    given: GivenArguments
    timeout: float | None = None
    as_json: bool = False
    output: str | None = None
    """The file for what is no text."""


async def call(host: Host, wish: CallRequested, broken: Broken) -> Outcome:
    """Call the tool. Raises UnknownName, InvalidArguments and Declined, and ServerNotReady where there is no server."""
    await host.ready([wish.server])
    if not host.server(wish.server).ready:
        raise failure(host, wish.server, broken)
    tool = _tool(host, wish)
    arguments = typed(wish.given, tool.input_schema)
    running = host.call_tool(wish.server, tool.name, arguments, timeout=wish.timeout)
    try:
        return await outcome_of(host, running, broken, as_json=wish.as_json, output=wish.output)
    except InvalidArguments as error:
        if all(path for path, _ in error.problems):
            raise
        raise InvalidArguments([*error.problems, (tool.name, _takes(tool))]) from None  # as a whole: names, mostly


async def outcome_of(
    host: Host, running: ToolCall, broken: Broken, *, as_json: bool, output: str | None = None
) -> Outcome:
    """Wait for a call's end, its progress on the status line. Raises where it is mcphost that did not send it."""
    server, status = running.request.server, StatusLine()
    stop = host.bus.observe(lambda event: _show_progress(event, running, status))
    try:
        result = await running.result()
    except ServerNotReady as error:
        raise failure(host, server, broken) from error
    except (PeerError, TransportError, RequestError) as error:
        return failed(host, server, error)
    finally:
        stop()
        status.clear()
    text = json_text(result.raw) if as_json else result_text(result)
    code, doubts = Exit.TOOL_FAILED if result.is_error else Exit.DONE, _doubts(running)
    try:
        return Outcome(text, code, (*doubts, *await _saved(result, output, as_json=as_json)))
    except ConfigError as error:  # the tool has run: what it said is not lost for want of a file
        return Outcome(text, exit_for(error), (*doubts, str(error)))


async def _saved(result: CallToolResult, output: str | None, *, as_json: bool) -> list[str]:
    """Write what is no text into the file ``output``; the sentences on it. Raises ConfigError."""
    files = files_in(result.content)
    if output is not None:
        return await asyncio.to_thread(write, output, files) or [f"nothing is in {output}: the result holds no file"]
    return ["what is no text is only named; --output FILE saves it"] if files and not as_json else []


def result_text(result: CallToolResult) -> str:
    """A result for people: its texts as they are, other blocks named; structured content where that is all."""
    if not result.content and result.has_structured:
        return marked(json_text(result.structured))
    return "".join(
        marked(each.text) if isinstance(each, TextContent) else ended(block_text(each)) for each in result.content
    )


async def once_ready(host: Host, server: str, broken: Broken, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Do ``work`` once the server is there. Raises as the host does where it is mcphost that did not do it."""
    await host.ready([server])
    if not host.server(server).ready:
        raise failure(host, server, broken)
    try:
        return await work()
    except ServerNotReady as error:
        raise failure(host, server, broken) from error
    except (PeerError, TransportError, RequestError) as error:
        return failed(host, server, error)


def failed(host: Host, server: str, error: McphostError) -> Outcome:
    """What the server did instead of answering."""
    reason = f"{server}: {error}"
    if isinstance(error, ConnectionLost):
        reason = with_last_words(host, server, reason)
    advice = next_step(error, server, host.server(server).config)
    return Outcome(code=exit_for(error), remarks=(reason, *([advice] if advice else [])))


def _tool(host: Host, wish: CallRequested) -> Tool:
    try:
        return host.catalog.tool(wish.server, wish.tool)
    except UnknownName as error:
        why = why_unknown(host, wish.server, CatalogKind.TOOLS, wish.tool, error)
        raise _mistyped(host, wish, error) if why is error else why from None


def _mistyped(host: Host, wish: CallRequested, error: UnknownName) -> UnknownName:
    from difflib import get_close_matches  # late: only who mistypes pays for it

    names = [each.tool.name for each in host.catalog.tools(wish.server)]
    if near := get_close_matches(wish.tool, names, 3):
        return UnknownName(f"{wish.server} has no tool {wish.tool!r}; did you mean {' or '.join(near)}?")
    notice = host.server(wish.server).notice  # why it may be missing
    return UnknownName(f"{error}; {notice}") if notice else error


def _takes(tool: Tool) -> str:
    """The arguments there are, in a few words."""
    properties = tool.input_schema.get("properties")
    names = list(properties)[:30] if isinstance(properties, Mapping) else []
    return f"takes {', '.join(names) or 'no arguments'}"


def block_text(block: Content) -> str:
    """A block for people: a text as it is, all else named."""
    match block:
        case TextContent():
            return foreign(block.text)
        case MediaContent():
            return f"[{block.type} {_named(block.mime_type)} {size_text(len(block.content()))}]"
        case EmbeddedResource():
            return f"[resource {_contents(block.resource)}]"
        case ResourceLink():
            return f"[resource link {_named(block.uri, block.mime_type, block.title or block.name)}]"
        case UnreadableContent():
            return f"[{_named(block.type)}: {_named(block.reason)}]"


def _contents(resource: ResourceContents) -> str:
    size = len((resource.text or "").encode("utf-8", "replace")) or len(resource.blob or "") * 3 // 4
    return f"{_named(resource.uri, resource.mime_type)} {size_text(size)}"


def _named(*parts: str | None) -> str:
    return " ".join(show_line(part) for part in parts if part)


def ended(text: str) -> str:
    """The text with an end to its last line."""
    return text if text.endswith("\n") else f"{text}\n"


def _doubts(running: ToolCall) -> Sequence[str]:
    """What is to be said about the result's structured content."""
    verdict = running.validity
    if verdict is None:
        return ()
    notes = (f"structured content: {verdict.note}",) if verdict.note else ()
    mismatches = (f"{problem.path or 'structured content'}: {problem.message}" for problem in verdict.problems)
    return (*notes, *(f"does not fit the output schema: {text}" for text in mismatches))


def _show_progress(event: Event, running: ToolCall, status: StatusLine) -> None:
    if isinstance(event, CallChanged) and event.call == running.number and running.progress is not None:
        status.show(f"{running.request.tool}  {_progress_text(running.progress)}  {duration_text(running.elapsed)}")


def _progress_text(progress: Progress) -> str:
    done = f"{progress.progress:g}" + ("" if progress.total is None else f"/{progress.total:g}")
    share = "" if progress.fraction is None else f" {progress.fraction:.0%}"
    return f"{done}{share} {progress.message or ''}".rstrip()
