"""``mcphost call``: one tool, run once, its result on stdout."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.approver import approver_for
from mcphost.cli.failures import BrokenServers, failure, why_unknown, with_stderr
from mcphost.cli.json_input import read_json
from mcphost.cli.margin import size
from mcphost.cli.output import (
    ErrorReport,
    Exit,
    Outcome,
    StatusLine,
    answer,
    exit_for,
    fitted,
    foreign,
    is_terminal,
    json_text,
    remark,
    table,
)
from mcphost.cli.preparation import run_with_answers, run_without_calls, select_server
from mcphost.cli.save_files import claim, files_in, write
from mcphost.composition import is_ad_hoc
from mcphost.config.files import text_of
from mcphost.errors import (
    ConfigError,
    ConnectionLost,
    InvalidArguments,
    InvalidResult,
    McphostError,
    PeerError,
    RequestError,
    ServerNotReady,
    TransportError,
    UnknownName,
)
from mcphost.host.catalog import CatalogKind
from mcphost.host.events import CallChanged, RepetitionChanged
from mcphost.host.failure_advice import next_step, older_version_advice
from mcphost.host.tool_calls.call import ArgumentReferences, CallRequest, ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall, read_seconds
from mcphost.json_values import as_list
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line, show_name, size_text
from mcphost.protocol.models.content import (
    Content,
    EmbeddedResource,
    MediaContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnreadableContent,
)
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult, Tool

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.protocol.models.tasks import Task

STDIN_BYTES: Final = 16_000_000
"""Limit of what ``--args -`` reads from stdin."""

LINE: Final = 200
"""Characters of an answer on the line of its run."""

_DEFINITIONS: Final = ("$defs", "definitions")


def run_call(options: Namespace) -> int:
    given = read_arguments(options.pairs, options.args)
    repeat = _repetition(options)
    claim(options.output)
    chosen, name = select_server(options)
    approver = approver_for(name, options.tool, yes=options.yes, configured=not is_ad_hoc(options.server))
    requested = CallRequested(name, options.tool, given, options.timeout, options.json, options.output, repeat=repeat)
    return run_with_answers(options, chosen, approver, lambda host: call(host, requested, chosen.broken))


def _repetition(options: Namespace) -> tuple[float, int | None] | None:
    """The seconds between two runs, and the number of runs. Raises ConfigError."""
    if options.repeat is None:
        if options.times is not None:
            raise ConfigError("--times needs --repeat")
        return None
    if options.output is not None:
        raise ConfigError("--output cannot be used with --repeat: each run would replace the file")
    try:
        return read_seconds(str(options.repeat)), options.times
    except ValueError as error:
        raise ConfigError(f"--repeat: {error}") from None


def run_help(options: Namespace) -> int:
    """Print what a tool does and takes, and call nothing."""
    chosen, name = select_server(options)
    requested = CallRequested(name, options.tool, CommandLineArguments(), as_json=options.json)
    return run_without_calls(options, chosen, lambda host: describe(host, requested, chosen.broken, options.server))


@dataclass(frozen=True, slots=True)
class CommandLineArguments:
    """Arguments as typed: ``values`` are JSON, ``texts`` get their types from the tool's schema."""

    values: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def read_arguments(pairs: Sequence[str], whole: str | None) -> CommandLineArguments:
    """Parse ``key=value`` pairs and ``--args``. Raises InvalidArguments."""
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
    return CommandLineArguments(values, texts)


def typed_arguments(given: CommandLineArguments, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with each text converted to the type in ``schema``. Raises InvalidArguments with every problem."""
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
    """Convert ``text`` as a form does."""
    from mcphost.protocol.forms.form import (  # late: most arguments are text
        ABSENT,
        FieldError,
        FieldKind,
        parse,
        read_form,
    )

    # A form of this one property: its neighbours and combining keywords do not matter.
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
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(STDIN_BYTES + 1)
        if len(data) > STDIN_BYTES:
            raise InvalidArguments([("--args -", f"stdin holds more than {size_text(STDIN_BYTES)}")])
        return text_of(data)
    except UnicodeDecodeError:
        raise InvalidArguments([("--args -", "stdin is not UTF-8")]) from None
    except OSError as error:
        raise InvalidArguments([("--args -", f"stdin cannot be read: {error.strerror}")]) from None


def _json(name: str, text: str) -> Any:
    try:
        return read_json(text)
    except RecursionError:
        raise InvalidArguments([(name, "is nested too deeply")]) from None
    except ValueError as error:
        raise InvalidArguments([(name, f"is not JSON: {error}")]) from None


@dataclass(frozen=True, slots=True)
class CallRequested:
    """The call to make. ``timeout``: seconds without answer or progress; None: as configured."""

    server: str
    tool: str
    given: CommandLineArguments
    timeout: float | None = None
    as_json: bool = False
    output: str | None = None
    """The file for pictures, sounds and embedded resources."""
    references: ArgumentReferences | None = None
    """The references in the arguments of a saved call."""
    repeat: tuple[float, int | None] | None = None
    """The seconds between two runs, and the number of runs (None: until ctrl+c); None: it runs once."""


async def call(host: Host, request: CallRequested, broken: BrokenServers) -> Outcome:
    """Call the tool. Raises UnknownName, InvalidArguments, Declined and ServerNotReady."""
    await asyncio.gather(host.servers.ready([request.server]), host.tool_calls.prepare())
    if not host.servers[request.server].ready:
        raise failure(host, request.server, broken)
    tool = _tool(host, request)
    arguments = typed_arguments(request.given, tool.input_schema)
    asked = CallRequest(request.server, tool.name, arguments, timeout=request.timeout, references=request.references)
    try:
        if request.repeat is not None:
            return await _repeated(host, asked, request.repeat, broken, as_json=request.as_json)
        running = host.tool_calls.begin(asked)
        try:
            return await outcome_of(host, running, broken, as_json=request.as_json, output=request.output)
        except asyncio.CancelledError:  # by a signal: the result of this call, or of its task, is not wanted any more
            running.cancel()
            raise
    except InvalidArguments as error:
        unknown = [
            (tool.name, f"unknown argument {show_line(name, 64)}{_near_name(name, tool)}")
            for name in _unknown(arguments, tool)
        ]
        # Problems of the whole object are mostly wrong names.
        named = [
            each for each in error.problems if not (unknown and each[0] == "" and each[1].startswith("unknown key"))
        ]
        if not unknown and all(path for path, _ in named):
            raise
        raise InvalidArguments([*unknown, *named, (tool.name, _argument_names(tool))]) from None


async def _repeated(
    host: Host, request: CallRequest, repeat: tuple[float, int | None], broken: BrokenServers, *, as_json: bool
) -> Outcome:
    """Repeat a call and print a line for each run. Raises what kept mcphost from sending it."""
    changed, printed = asyncio.Event(), 0
    stop = host.bus.observe(lambda _: changed.set(), RepetitionChanged)
    repeated = host.repeated_calls.begin(request, *repeat)
    try:
        while not repeated.end or repeated.runs > printed:
            if repeated.runs > printed and (ended := repeated.ended_call) is not None:
                printed = repeated.runs
                if ended.sent_at is not None:
                    answer(_run_line(repeated, ended, as_json=as_json))
            else:
                await changed.wait()
                changed.clear()
    finally:
        stop()
        host.repeated_calls.stop(repeated)
        if repeated.call is not None:
            repeated.call.cancel()  # by a signal: nothing that runs is wanted any more
    last = repeated.ended_call
    if last is not None and last.error is not None:
        return await outcome_of(host, last, broken, as_json=as_json)
    done = last is not None and last.outcome is not None and not last.outcome.is_error
    return Outcome(code=Exit.DONE if done else Exit.NEGATIVE)


def _run_line(repeated: RepeatedCall, run: ToolCall, *, as_json: bool) -> str:
    """``3  14:05:30  12 ms  done  ≠  text``; ≠ marks an answer that differs from the one before."""
    differs = repeated.runs in repeated.changed_runs
    when = datetime.fromtimestamp(run.time).astimezone()
    if as_json:
        fields = {
            "run": repeated.runs,
            "time": when.isoformat(timespec="milliseconds"),
            "seconds": round(run.elapsed, 3),
        }
        result = None if run.outcome is None else run.outcome.raw
        return json_text({**fields, "state": run.state.value, "differs": differs, "result": result}, colours=False)
    text = str(run.error) if run.outcome is None else _on_one_line(run.outcome)
    mark = "≠" if differs else " "
    facts = f"{repeated.runs:>4}  {when:%H:%M:%S}  {duration_text(run.elapsed):>7}  {run.state.value:<9}  {mark}"
    line = f"{facts}  {show_line(text, LINE)}"
    return f"{fitted(line, size(sys.stdout)[0] - 1) if is_terminal(sys.stdout) else line}\n"


def _on_one_line(result: CallToolResult) -> str:
    """The text of a result, its lines one after the other; structured content where there is nothing else."""
    if not result.content and result.has_structured:
        return json.dumps(result.structured, ensure_ascii=False)
    blocks = (block.text if isinstance(block, TextContent) else block_text(block) for block in result.content)
    return " ".join(" ".join(blocks)[: 10 * LINE].split())


async def describe(host: Host, request: CallRequested, broken: BrokenServers, typed: str) -> Outcome:
    """The tool's description and arguments; ``typed`` is the server as on the command line.

    Raises UnknownName and ServerNotReady.
    """
    await host.servers.ready([request.server])
    if not host.servers[request.server].ready:
        raise failure(host, request.server, broken)
    tool = _tool(host, request)
    if request.as_json:
        return Outcome(json_text(tool.definition()))
    from mcphost.protocol.forms.listed_arguments import schema_arguments  # late: a call does without

    listed = schema_arguments(tool.input_schema)
    rows = [
        (f"{row.name}{'*' * row.needed}", row.type or "any", row.default or "-", row.meaning or "-")
        for row in listed.rows
    ]
    about = with_newline(foreign(tool.description)) if tool.description else ""
    usage = f"usage: mcphost call {shlex.quote(typed)} {shlex.quote(tool.name)} [KEY=VALUE ...]"
    head = ("ARGUMENT", "TYPE", "DEFAULT", "ABOUT")
    raw = f"{listed.raw_only}: --args takes JSON" if listed.raw_only else ""
    more = "".join(f"{show_line(words)}\n" for words in (listed.left_out, raw) if words)
    arguments = f"{table([head, *rows], narrow=True) if rows else ''}{more}" or "It takes no arguments.\n"
    needed = "*: needed\n" if any(row[0].endswith("*") for row in rows) else ""
    return Outcome(f"{show_line(usage)}\n\n{about}\n{arguments}{needed}")


async def outcome_of(
    host: Host, running: ToolCall, broken: BrokenServers, *, as_json: bool, output: str | None = None
) -> Outcome:
    """Wait for a call to end, showing its progress on the status line. Raises what kept mcphost from sending it."""
    server, status = running.request.server, StatusLine()
    stop = host.bus.observe(_CallReport(running, status).changed, CallChanged)
    try:
        result = await running.result()
    except ServerNotReady as error:
        raise failure(host, server, broken) from error
    except (PeerError, TransportError, RequestError) as error:
        return failure_outcome(host, server, error)
    except asyncio.CancelledError:
        if running.sent_at is not None and is_terminal(sys.stderr):
            tool = show_line(running.request.tool, 64)
            remark(f"interrupted: {server} is notified, but {tool} may have done part of its work already")
        raise
    finally:
        stop()
        status.clear()
    text = json_text(result.raw) if as_json else result_text(result)
    doubts = (*_flag_remarks(result), *_validation_remarks(running))
    if result.is_error and (advice := older_version_advice(result_text(result), server, host.servers[server].config)):
        doubts = (*doubts, f"{server}: {advice}")
    errors = () if not result.unread or as_json else (unread_report(server, result.unread),)
    code = Exit.NEGATIVE if result.is_error else Exit.NOT_CONNECTED if errors else Exit.DONE
    try:
        return Outcome(text, code, (*doubts, *await _saved(result, output, as_json=as_json)), errors)
    except ConfigError as error:  # the tool has run, so its answer is printed although the file cannot be written
        return Outcome(text, exit_for(error), doubts, (*errors, ErrorReport.from_error(error)))


def unread_report(server: str, unread: str) -> ErrorReport:
    """The report on a result that holds something, but nothing that can be printed."""
    return ErrorReport.from_error(InvalidResult(f"{server}: {unread}; --json shows it"))


def _flag_remarks(result: CallToolResult) -> Sequence[str]:
    """A remark where it is mcphost's reading that a tool failed, or that it did not."""
    said = result.raw.get("isError", False)
    if said is None or isinstance(said, bool):
        return ()
    read = "a failure" if result.is_error else "no failure"
    return (f"isError is {show_name(said, 40)}, neither true nor false; mcphost reads it as {read}",)


async def _saved(result: CallToolResult, output: str | None, *, as_json: bool) -> list[str]:
    """Write content that is not text to the file ``output``; returns sentences about it. Raises ConfigError."""
    files = files_in(result.content)
    if output is not None:
        return await asyncio.to_thread(write, output, files) or [f"nothing is in {output}: the result holds no file"]
    unprinted = not as_json and any(isinstance(each, MediaContent) or each.text is None for each in files)
    return ["content that is not text is only named here; --output FILE saves it"] if unprinted else []


def result_text(result: CallToolResult) -> str:
    """A result for people: texts unchanged, other blocks named; structured content only where there is nothing else."""
    if not result.content and result.has_structured:
        return foreign(json_text(result.structured, colours=False))
    return "".join(with_newline(block_text(each)) for each in result.content)


async def when_ready(host: Host, server: str, broken: BrokenServers, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Run ``work`` once the server is ready. Raises what kept mcphost from doing it."""
    await host.servers.ready([server])
    if not host.servers[server].ready:
        raise failure(host, server, broken)
    try:
        return await work()
    except ServerNotReady as error:
        raise failure(host, server, broken) from error
    except (PeerError, TransportError, RequestError) as error:
        return failure_outcome(host, server, error)


def failure_outcome(host: Host, server: str, error: McphostError) -> Outcome:
    """The outcome of a request that the server did not answer."""
    reason = f"{server}: {error}"
    if isinstance(error, ConnectionLost):
        reason = with_stderr(host, server, reason)
    advice = next_step(error, server, host.servers[server].config)
    return Outcome(code=exit_for(error), errors=(ErrorReport.from_error(error, reason, advice=advice or ""),))


def _tool(host: Host, request: CallRequested) -> Tool:
    try:
        return host.catalog.tool(request.server, request.tool)
    except UnknownName as error:
        why = why_unknown(host, request.server, CatalogKind.TOOLS, request.tool, error)
        raise _suggestion(host, request, error) if why is error else why from None


def _suggestion(host: Host, request: CallRequested, error: UnknownName) -> UnknownName:
    from difflib import get_close_matches  # late: only who mistypes pays for it

    names = [each.tool.name for each in host.catalog.tools(request.server)]
    if near := get_close_matches(request.tool, names, 3):
        return UnknownName(f"{request.server} has no tool {request.tool!r}; did you mean {' or '.join(near)}?")
    notice = host.servers[request.server].notice  # why it may be missing
    return UnknownName(f"{error}; {notice}") if notice else error


def _properties(tool: Tool) -> list[str]:
    properties = tool.input_schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _unknown(arguments: Mapping[str, Any], tool: Tool) -> list[str]:
    """The arguments that the tool does not name, unless it takes names of its own."""
    if tool.input_schema.get("additionalProperties") or "patternProperties" in tool.input_schema:
        return []
    known = _properties(tool)
    return [name for name in arguments if name not in known]


def _near_name(name: str, tool: Tool) -> str:
    from difflib import get_close_matches  # late: only who mistypes pays for it

    known = _properties(tool)
    found = get_close_matches(name, known, 1) or [each for each in known if each.startswith(name)][:1]
    return f"; did you mean {found[0]}?" if found else ""


def _argument_names(tool: Tool) -> str:
    """The names of a tool's arguments, for an error; those that it needs have a star."""
    starred = as_list(tool.input_schema.get("required"))
    names = [f"{name}*" if name in starred else name for name in _properties(tool)[:30]]
    return f"takes {', '.join(names) or 'no arguments'}{' (*: needed)' if starred else ''}"


def block_text(block: Content) -> str:
    """A block for people: text unchanged, everything else named."""
    match block:
        case TextContent():
            return foreign(block.text)
        case MediaContent():
            return f"[{block.type} {_named(block.mime_type)} {size_text(len(block.content()))}]"
        case EmbeddedResource(resource=contents):
            named = f"[resource {_contents(contents)}]"
            return named if contents.text is None else f"{named}\n{foreign(contents.text)}"
        case ResourceLink():
            return f"[resource link {_named(block.uri, block.mime_type, block.title or block.name)}]"
        case UnreadableContent():
            return f"[{_named(block.type)}: {show_line(block.words, 400)}]"


def _contents(resource: ResourceContents) -> str:
    return _named(resource.uri, resource.mime_type, size_text(len(resource.content())))


def _named(*parts: str | None) -> str:
    return " ".join(show_line(part) for part in parts if part)


def with_newline(text: str) -> str:
    """``text`` with its last line ended."""
    return text if text.endswith("\n") else f"{text}\n"


def _validation_remarks(running: ToolCall) -> Sequence[str]:
    """Sentences on how the structured content fits the output schema."""
    validity = running.validity
    if validity is None:
        return ()
    notes = (f"structured content: {validity.note}",) if validity.note else ()
    mismatches = (f"{problem.path or 'structured content'}: {problem.message}" for problem in validity.problems)
    return (*notes, *(f"does not match the output schema: {text}" for text in mismatches))


def _task_name(running: ToolCall) -> str:
    """The call's display name; a call that collects a task may not know the tool."""
    return show_line(running.request.tool or "the call", 64)


class _CallReport:
    """Shows a call's progress on the status line, and names in remarks what it waits for, each thing once."""

    def __init__(self, running: ToolCall, status: StatusLine) -> None:
        self._running, self._status = running, status
        self._named = set[str]()

    def changed(self, event: CallChanged) -> None:
        if event.call != self._running.number:
            return
        if self._running.task is not None and not self._running.task.ended:
            self._name_task(self._running.task)
        self._show_progress()

    def _name_task(self, task: Task) -> None:
        server = self._running.request.server
        if not self._named:
            self._named.add("")
            name, state = _task_name(self._running), show_line(task.words)
            remark(f"{server} answers {name} later: waiting for its task ({state})")
        if task.oddity and task.oddity not in self._named:
            self._named.add(task.oddity)
            remark(f"{server}: {task.oddity}; mcphost goes on asking")

    def _show_progress(self) -> None:
        running = self._running
        if running.progress is not None:
            doing = _progress_text(running.progress)
        elif running.task is not None and not running.state.ended:
            doing = running.doing
        else:
            return
        self._status.show(f"{_task_name(running)}  {doing}  {duration_text(running.elapsed)}")


def _progress_text(progress: Progress) -> str:
    done = f"{progress.progress:g}" + ("" if progress.total is None else f"/{progress.total:g}")
    share = "" if progress.fraction is None else f" {progress.fraction:.0%}"
    return f"{done}{share} {progress.message or ''}".rstrip()
