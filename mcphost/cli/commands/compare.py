"""``mcphost compare``: one server in both eras, or two servers, side by side."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcphost.cli.approver import approver_for
from mcphost.cli.commands.call import CommandLineArguments, read_arguments, typed_arguments
from mcphost.cli.failures import BrokenServers, failure, left_out
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, json_text, table
from mcphost.cli.preparation import load_config, run_with_answers
from mcphost.composition import Selection, is_ad_hoc, select
from mcphost.errors import ConfigError, UnknownName, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.observation import PlannedCalls
from mcphost.host.comparison.report import Comparison, Row, as_object, compare_sides, rows_of
from mcphost.host.comparison.sides import ERAS, Sides, between, in_eras
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.tools import Tool

if TYPE_CHECKING:
    from mcphost.host.host import Host


def run_compare(options: Namespace) -> int:
    """Compare one server in both eras, or two servers."""
    given = _read_words(options)
    chosen, sides = _chosen(options, given)
    planned = None
    if given.tool is not None:
        typed = read_arguments(given.pairs, options.args)
        planned = PlannedCalls(given.tool, lambda tool: _arguments(typed, tool), options.times, options.timeout)
    configured = not is_ad_hoc(options.server)
    approver = approver_for(
        options.server, given.tool or "", yes=options.yes, configured=configured, times=options.times
    )
    return run_with_answers(
        options,
        chosen,
        approver,
        lambda host: compare(host, sides, planned, chosen.broken, as_json=options.json),
    )


@dataclass(frozen=True, slots=True)
class ComparisonWords:
    """The sides and the call that the command line names."""

    servers: tuple[str, ...]
    tool: str | None
    pairs: tuple[str, ...]


def _read_words(options: Namespace) -> ComparisonWords:
    """Tell servers from the tool. Raises UsageError."""
    servers, words = [options.server], list(options.words)
    if words and _is_server(options, words[0]):
        servers.append(words.pop(0))
    if options.era is not None and len(servers) > 1:
        raise UsageError("--era compares one server with itself; leave it out, or name one server")
    tool = words.pop(0) if words else None
    if tool is None and (options.args is not None or options.times > 1):
        raise UsageError("--args and --times are for calls; name a tool")
    return ComparisonWords(tuple(servers), tool, tuple(words))


def _is_server(options: Namespace, word: str) -> bool:
    if is_ad_hoc(word):
        return True
    if options.era is not None:
        return False
    loaded = load_config(options, [options.server])
    return word in loaded.config.servers or word in loaded.disabled


def _chosen(options: Namespace, given: ComparisonWords) -> tuple[Selection, Sides]:
    """The servers to run, and the sides of the comparison. Raises ConfigError."""
    if len(set(given.servers)) < len(given.servers):
        raise UsageError("these are the same server; name one to compare it in both eras")
    chosen = select(load_config(options, given.servers), given.servers)
    for error in chosen.broken.values():
        raise error
    if len(chosen.names) == 2:
        return chosen, between(*chosen.names)
    (name,) = chosen.names
    config, sides = in_eras(chosen.config, name, options.era or ERAS)
    copies = {side.server: config.servers[side.server] for side in sides}
    return replace(chosen, config=config.model_copy(update={"servers": copies}), names=tuple(copies)), sides


def _arguments(given: CommandLineArguments, tool: Tool | None) -> Mapping[str, Any]:
    if tool is None:
        raise UnknownName("neither side has this tool")
    return typed_arguments(given, tool.input_schema)


async def compare(
    host: Host, sides: Sides, planned: PlannedCalls | None, broken: BrokenServers, *, as_json: bool
) -> Outcome:
    """Observe both sides and report. Raises Declined, UnknownName, InvalidArguments."""
    status = StatusLine()
    try:
        first, second = await host.comparison.observe(sides, planned, lambda text: status.show(text, last=True))
    finally:
        status.clear()
    comparison = compare_sides(first, second)
    text = json_text(as_object(comparison)) if as_json else table(list(_table(comparison)))
    closed = [seen.side for seen in (first, second) if seen.failure]
    errors = [failure(host, side.server, broken, called=side.name) for side in closed]
    if errors:
        code = Exit.USAGE if any(isinstance(error, ConfigError) for error in errors) else Exit.NOT_CONNECTED
        return Outcome(text, code, errors=tuple(map(ErrorReport.from_error, errors)))
    remarks = [
        line for side in sides for kind in CatalogKind for line in left_out(host, side.server, kind, called=side.name)
    ]
    return Outcome(text, Exit.DONE if comparison.same else Exit.NEGATIVE, tuple(remarks))


def _table(comparison: Comparison) -> Iterator[Sequence[str]]:
    yield "", "", comparison.first.side.label.upper(), comparison.second.side.label.upper()
    yield from (_cells(row) for row in rows_of(comparison))


def _cells(row: Row) -> Sequence[str]:
    label = row.label if row.heading else f"  {row.label}"
    return row.mark, label, row.first, row.second
