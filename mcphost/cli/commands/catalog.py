"""``mcphost list``, ``read``, ``prompt`` and ``complete``: what servers offer."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.commands.call import block_text, read_arguments, unread_report, when_ready, with_newline
from mcphost.cli.failures import BrokenServers, failure, left_out, listing_failure, unselected, why_unknown, worst_exit
from mcphost.cli.output import ErrorReport, Exit, Outcome, foreign, json_text, remark, reports_on, table
from mcphost.cli.preparation import run_with_answers, run_without_calls, select_server, select_servers
from mcphost.cli.save_files import claim, write
from mcphost.errors import (
    InvalidArguments,
    InvalidResult,
    McphostError,
    ServerNotReady,
    UnknownName,
)
from mcphost.host.catalog import CatalogKind
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, show_name, size_text
from mcphost.protocol.models.content import EmbeddedResource, ResourceContents, UnreadableContent
from mcphost.protocol.models.prompts import CompletionRef, GetPromptResult, Prompt, PromptRef, TemplateRef
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.models.tools import Tool

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.protocol.models.skills import Skill

REFUSED: Final = 20
"""Refused skills of one server that are named on stderr."""

LIST_SECONDS: Final = 3.0
"""Seconds to wait for the list of resources, which says how large a resource is, before reading it."""


def run_list(options: Namespace) -> int:
    chosen = select_servers(options)
    what = options.kind, chosen.names, chosen.broken
    return run_without_calls(options, chosen, lambda host: list_catalog(host, *what, as_json=options.json))


def run_read(options: Namespace) -> int:
    claim(options.output)
    chosen, name = select_server(options)
    how = {"output": options.output, "as_json": options.json}
    return run_with_answers(options, chosen, None, lambda host: read(host, name, options.uri, chosen.broken, **how))


def run_prompt(options: Namespace) -> int:
    given = read_arguments(options.pairs, None)
    arguments = {**given.values, **given.texts}
    chosen, name = select_server(options)
    requested = name, options.prompt, arguments, chosen.broken
    return run_with_answers(options, chosen, None, lambda host: prompt(host, *requested, as_json=options.json))


def run_complete(options: Namespace) -> int:
    ref, others = read_ref(options.ref), read_arguments(options.pairs, None).texts
    chosen, name = select_server(options)
    field = ref, options.argument, options.value, others
    return run_without_calls(options, chosen, lambda host: complete(host, name, *field, chosen.broken))


@dataclass(frozen=True, slots=True)
class ListedKind:
    """A kind of list. ``member`` is its name in the protocol."""

    kind: CatalogKind
    member: str
    heading: tuple[str, ...]
    row: Callable[[Any], tuple[str, ...]]


def _tool_row(tool: Tool) -> tuple[str, ...]:
    claims = "refused" if tool.refusal else ", ".join([*tool.claims, *(["app only"] if tool.app_only else [])])
    return tool.name, _title(tool.label, tool.name), claims or "-", _first_line(tool.description)


def _resource_row(resource: Resource) -> tuple[str, ...]:
    size = "-" if resource.size is None else size_text(resource.size)
    return resource.uri, _title(resource.label, resource.uri), resource.mime_type or "-", size


def _template_row(template: ResourceTemplate) -> tuple[str, ...]:
    return template.uri_template, _title(template.label, template.uri_template), template.mime_type or "-"


def _prompt_row(prompt: Prompt) -> tuple[str, ...]:
    arguments = ", ".join(f"{each.name}{'*' if each.required else ''}" for each in prompt.arguments or ())
    return prompt.name, _title(prompt.label, prompt.name), arguments or "-", _first_line(prompt.description)


def _skill_row(skill: Skill) -> tuple[str, ...]:
    unvouched = skill.refusal or skill.dynamic
    files, size = ("-", "-") if unvouched else (str(len(skill.files)), size_text(skill.size))
    return skill.name or "-", skill.uri, files, size, _first_line(skill.description)


def _cells(host: Host, name: str, listing: ListedKind, item: Any) -> tuple[str, ...]:
    if listing.kind is not CatalogKind.SKILLS:
        return listing.row(item)
    *facts, description = listing.row(item)
    return (*facts, host.skills.status(name, item).kind.value, description)


def _first_line(description: str | None) -> str:
    return (description or "").strip().partition("\n")[0]


def _title(label: str, name: str) -> str:
    return "-" if label == name else label


OFFER_KINDS: Final[Mapping[str, ListedKind]] = {
    "tools": ListedKind(CatalogKind.TOOLS, "tools", ("TOOL", "TITLE", "CLAIMS", "DESCRIPTION"), _tool_row),
    "resources": ListedKind(CatalogKind.RESOURCES, "resources", ("URI", "TITLE", "TYPE", "SIZE"), _resource_row),
    "templates": ListedKind(CatalogKind.TEMPLATES, "resourceTemplates", ("TEMPLATE", "TITLE", "TYPE"), _template_row),
    "prompts": ListedKind(CatalogKind.PROMPTS, "prompts", ("PROMPT", "TITLE", "ARGUMENTS", "DESCRIPTION"), _prompt_row),
    "skills": ListedKind(
        CatalogKind.SKILLS, "skills", ("SKILL", "URI", "FILES", "SIZE", "STATE", "DESCRIPTION"), _skill_row
    ),
}


async def list_catalog(host: Host, what: str, names: Sequence[str], broken: BrokenServers, *, as_json: bool) -> Outcome:
    """List what servers offer of one kind. A server that fails becomes a remark, and the others are listed."""
    listing = OFFER_KINDS[what]
    await host.servers.ready(list(names))
    found: dict[str, Sequence[Any]] = {}
    failures: list[McphostError] = []

    async def list_one(name: str) -> None:
        try:
            found[name] = await _listed(host, name, listing.kind, broken)
        except McphostError as error:
            failures.append(error)

    await asyncio.gather(*map(list_one, names))
    failures += [error for _, error in unselected(broken, names)]
    found = {name: found[name] for name in names if name in found}
    if as_json:
        objects = ({"server": name, listing.member: [it.definition() for it in items]} for name, items in found.items())
        text = "".join(map(json_text, objects))
    else:
        rows = [(name, *_cells(host, name, listing, item)) for name, items in found.items() for item in items]
        text = table([("SERVER", *listing.heading), *rows], narrow=True) if rows else ""
    remarks = [words for name in found for words in _remarks(host, name, listing.kind)]
    errors = tuple(each for error in failures for each in reports_on(error))
    return Outcome(text, worst_exit(failures), tuple(remarks), errors)


async def _listed(host: Host, name: str, kind: CatalogKind, broken: BrokenServers) -> Sequence[Any]:
    """The items of one server. Raises why they are not known."""
    try:
        if host.servers[name].ready:
            await host.servers[name].settled_list(kind)
    except ServerNotReady:
        raise failure(host, name, broken) from None
    if not host.servers[name].ready:
        raise failure(host, name, broken)
    if failed := listing_failure(host, name, kind):
        raise failed
    return list(host.servers[name].listings.of_kind(kind).items)


def _remarks(host: Host, name: str, kind: CatalogKind) -> Iterator[str]:
    connection = host.servers[name]
    if not connection.listings.declared(kind):
        yield f"{name}: offers no {kind.value}"
    elif notice := connection.notice_of(kind):
        yield f"{name}: {notice}"
    yield from left_out(host, name, kind)
    if kind is CatalogKind.SKILLS:
        skills = [each.skill for each in host.catalog.skills(name)]
        refused = [each for each in skills if each.refusal]
        yield from (f"{name}: {show_name(each.label)} is refused: {each.refusal}" for each in refused[:REFUSED])


async def read(
    host: Host, server: str, uri: str, broken: BrokenServers, *, output: str | None, as_json: bool
) -> Outcome:
    """Read a resource and print it, or write it to the file ``output``."""

    async def work() -> Outcome:
        await _warn_if_large(host, server, uri)
        result = await host.resources.read(server, uri)
        spoilt = [each for each in result.contents if isinstance(each, UnreadableContent)]
        errors = tuple(_unreadable(server, each) for each in spoilt)
        if result.unread and not as_json:
            errors = (unread_report(server, result.unread),)
        remarks = [] if result.contents or result.unread else ["no content: the server sent an empty answer"]
        if output is not None:
            readable = [each for each in result.contents if isinstance(each, ResourceContents)]
            remarks += await asyncio.to_thread(write, output, readable)
        text = json_text(result.raw) if as_json else "" if output is not None else _contents_text(result)
        return Outcome(text, Exit.NOT_CONNECTED if errors else Exit.DONE, tuple(remarks), errors)

    return await when_ready(host, server, broken, work)


def _unreadable(server: str, contents: UnreadableContent) -> ErrorReport:
    return ErrorReport.from_error(
        InvalidResult(f"{server}: contents that cannot be read: {show_line(contents.words, 400)}")
    )


async def _warn_if_large(host: Host, server: str, uri: str) -> None:
    """Warn before a large resource is read. The message limit protects where the list comes too late."""
    with suppress(McphostError, TimeoutError):
        await asyncio.wait_for(host.resources.current(server, CatalogKind.RESOURCES), LIST_SECONDS)
    listed, limits = host.catalog.resource(server, uri), host.config.limits_for(server)
    if listed is not None and (listed.size or 0) > limits.resource_bytes:
        most = f"a message may have {size_text(limits.message_bytes)}"
        remark(f"{server}: says that this resource has {size_text(listed.size or 0)}; {most}")


async def prompt(
    host: Host, server: str, name: str, arguments: Mapping[str, object], broken: BrokenServers, *, as_json: bool
) -> Outcome:
    """Get a prompt, and print its messages."""

    async def work() -> Outcome:
        result = await host.resources.get_prompt(server, name, arguments)
        text = json_text(result.raw) if as_json else prompt_text(result)
        unread = bool(result.unread) and not as_json
        errors = (unread_report(server, result.unread),) if unread else ()
        code = Exit.NOT_CONNECTED if unread else Exit.DONE
        return Outcome(text, code, tuple(_unlisted(host, server, name, arguments)), errors)

    try:
        return await when_ready(host, server, broken, work)
    except UnknownName as error:
        raise why_unknown(host, server, CatalogKind.PROMPTS, name, error) from None


def _unlisted(host: Host, server: str, name: str, arguments: Mapping[str, object]) -> Iterator[str]:
    """Arguments that the prompt does not name: they were sent, and mostly are mistyped."""
    for offered in host.catalog.prompts(server):
        if offered.prompt.name == name:
            known = [each.name for each in offered.prompt.arguments or ()]
            there = ", ".join(known) or "none"
            yield from (f"{name} lists no argument {key!r}; it has: {there}" for key in arguments if key not in known)


async def complete(
    host: Host,
    server: str,
    ref: CompletionRef,
    argument: str,
    value: str,
    context: Mapping[str, str],
    broken: BrokenServers,
) -> Outcome:
    """Print what the server suggests, one value a line."""

    async def work() -> Outcome:
        found = await host.completion.complete(server, ref, argument, value, context)
        if found.unread:
            return Outcome(
                "", Exit.NOT_CONNECTED, errors=(ErrorReport.from_error(InvalidResult(f"{server}: {found.unread}")),)
            )
        left = (found.total or 0) - len(found.values) - found.unreadable
        more = f"{left} more" if left > 0 else "there are more" if found.has_more else ""
        odd = f"left out {found.unreadable} suggestions that are not texts" if found.unreadable else ""
        remarks = tuple(f"{server}: {words}" for words in (more, odd) if words)
        # With nothing to print, an exit of 0 would say that the server has nothing to suggest.
        code = Exit.NOT_CONNECTED if odd and not found.values else Exit.DONE
        return Outcome("".join(f"{each}\n" for each in found.usable), code, remarks)

    return await when_ready(host, server, broken, work)


def read_ref(text: str) -> CompletionRef:
    """``prompt:NAME`` or ``template:URI``; raises InvalidArguments."""
    kind, _, name = text.partition(":")
    if kind not in ("prompt", "template") or not name:
        raise InvalidArguments([(text, "is neither prompt:NAME nor template:URI")])
    return PromptRef(name) if kind == "prompt" else TemplateRef(name)


def prompt_text(result: GetPromptResult) -> str:
    """Messages for people: the role on its own line, then the content."""
    said = (f"{show_line(each.role, 40)}:\n{with_newline(block_text(each.content))}" for each in result.messages)
    return "\n".join(said)


def _contents_text(result: ReadResourceResult) -> str:
    """Text unchanged; binary contents are named."""
    parts = [_text(each) for each in result.contents if isinstance(each, ResourceContents)]
    return parts[0] if len(parts) == 1 else "".join(map(with_newline, parts))


def _text(contents: ResourceContents) -> str:
    if contents.text is not None:
        return foreign(contents.text)
    return with_newline(block_text(EmbeddedResource(type="resource", resource=contents)) + "; --output FILE saves it")
