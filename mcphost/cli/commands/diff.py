"""``mcphost diff``: the changes from one server, lock or recording to another."""

from __future__ import annotations

import asyncio
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.failures import failure, left_out, listing_failure, worst_exit
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, json_text
from mcphost.cli.preparation import load_config, run_without_calls
from mcphost.cli.report_formats import claim_reports
from mcphost.cli.run import finish
from mcphost.cli.surface_reports import ServerFindings, cases_of, write_surface_reports
from mcphost.composition import Selection, is_ad_hoc, select
from mcphost.config import Config, LoadedConfig
from mcphost.config.files import read_head
from mcphost.errors import ConfigError, McphostError, NotDone, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import SurfaceFinding, calls_for_attention, compare_surfaces, masked
from mcphost.host.comparison.lock_file import open_lock
from mcphost.host.comparison.severity import BREAKING, REVIEW
from mcphost.host.comparison.sides import EraName, in_era
from mcphost.host.comparison.surface import Surface, as_kept, surface_of_recording
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import safe_command

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.recordings.recording import RecordedSession

_ERA: Final = re.compile(r"(?P<server>.+)@(?P<era>legacy|modern)", re.DOTALL)

Surfaces = Mapping[str, Surface]
"""By server."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A word of the command line: a file with its ``surfaces``, or a server to open."""

    word: str
    surfaces: Surfaces | None = None
    argument: str = ""
    era: EraName | None = None
    server: str = ""
    """The name in the host, once it is chosen."""
    entry: str = ""
    problems: tuple[str, ...] = field(default=())
    sessions: Mapping[str, RecordedSession] = field(default_factory=dict)
    """Of a recording, by server."""

    @property
    def label(self) -> str:
        """The word as reports may show it."""
        return safe_command(self.word)


def run_diff(options: Namespace) -> int:
    """Compare two sides, and report the changes from the first to the second."""
    claim_reports(options)
    words = options.before, options.after
    if words[0] == words[1]:
        raise UsageError("these are the same; name two, such as git@legacy git@modern")
    live = [word for word in words if is_ad_hoc(word)]
    loaded = _loaded(options, words, live)
    sides = [_side(word, loaded) for word in words]
    remarks = [f"{side.label}: {each}" for side in sides for each in side.problems]
    if all(side.surfaces is not None for side in sides):
        return finish(_outcome(options, sides, [side.surfaces or {} for side in sides], remarks))
    config, sides = _chosen(loaded, sides)
    servers = {side.server: config.servers[side.server] for side in sides if side.server}
    chosen = Selection(config.model_copy(update={"servers": servers}), tuple(servers))

    async def work(host: Host) -> Outcome:
        return await _opened(host, options, sides, remarks)

    return run_without_calls(options, chosen, work)


def _loaded(options: Namespace, words: Sequence[str], live: Sequence[str]) -> LoadedConfig:
    """The configuration; one that cannot be read matters only where a word needs it."""
    try:
        return load_config(options, live if len(live) == len(words) else [], ignores_lock=True)
    except ConfigError:
        if options.config is None and all(is_ad_hoc(word) or _file_of(word) for word in words):
            return LoadedConfig(Config.model_construct())
        raise


def _side(word: str, loaded: LoadedConfig) -> _Side:
    """Find out what a word stands for. Raises ConfigError and NotDone where a file cannot be read."""
    if is_ad_hoc(word) or word in loaded.config.servers or word in loaded.disabled:
        return _live(word, loaded)
    if (found := _file_of(word)) is not None:
        return _in_file(word, *found)
    if "/" in word or Path(word).suffix in (".lock", ".json", ".jsonl"):
        raise ConfigError("there is no such file", path=Path(word))
    return _live(word, loaded)


def _live(word: str, loaded: LoadedConfig) -> _Side:
    known = word in loaded.config.servers or word in loaded.disabled
    found = None if known else _ERA.fullmatch(word)
    if found is None:
        return _Side(word, argument=word)
    era: EraName = "legacy" if found["era"] == "legacy" else "modern"
    return _Side(word, argument=found["server"], era=era)


def _file_of(word: str) -> tuple[Path, str] | None:
    """The file of a word, and the server in it that ``#NAME`` chooses."""
    if Path(word).is_file():
        return Path(word), ""
    file, mark, server = word.rpartition("#")
    return (Path(file), server) if mark and Path(file).is_file() else None


def _in_file(word: str, path: Path, server: str) -> _Side:
    surfaces, problems, sessions = (_of_lock(path), (), {}) if _is_lock(path) else _of_recording(path)
    if server and server not in surfaces:
        raise ConfigError(f"has no server {show_line(server)}; it has: {_names(surfaces)}", path=path)
    if not surfaces:
        raise ConfigError("holds no server", path=path)
    if server:
        surfaces = {server: surfaces[server]}
    return _Side(word, surfaces, problems=problems, sessions={name: sessions[name] for name in surfaces if sessions})


def _is_lock(path: Path) -> bool:
    """True for TOML with comments or keys; a recording begins with an object, or a list."""
    if path.suffix in (".json", ".jsonl"):
        return False
    return not read_head(path, 4096).lstrip().startswith((b"{", b"["))


def _of_lock(path: Path) -> Surfaces:
    lock = open_lock(path)
    return {name: surface for name in lock.servers if (surface := lock.surface(name)) is not None}


def _of_recording(path: Path) -> tuple[Surfaces, tuple[str, ...], Mapping[str, RecordedSession]]:
    from mcphost.host.recordings.reading import read_recording  # late: few runs read one

    try:
        recording = read_recording(path)
    except NotDone as error:
        raise ConfigError(str(error)) from None
    identities = recording.facts.servers if recording.facts is not None else {}
    sessions = {session.server: session for session in recording.sessions}
    surfaces = {name: surface_of_recording(each, name, identities.get(name, "")) for name, each in sessions.items()}
    return surfaces, recording.problems, sessions


def _chosen(loaded: LoadedConfig, sides: Sequence[_Side]) -> tuple[Config, list[_Side]]:
    """The configuration with the servers to open, and the sides with their names. Raises ConfigError, UnknownName."""
    arguments = list(dict.fromkeys(side.argument for side in sides if side.argument))
    selected = select(loaded, arguments)
    for error in selected.broken.values():
        raise error
    names = dict(zip(arguments, selected.names, strict=True))
    config, found = selected.config, list[_Side]()
    for side in sides:
        if not side.argument:
            found.append(side)
            continue
        name = names[side.argument]
        entry = "" if is_ad_hoc(side.argument) else name
        if side.era is not None:
            config, copy = in_era(config, name, side.era)
            name = copy.server
        found.append(replace(side, server=name, entry=entry))
        recorded = next((other.sessions for other in sides if other.sessions), {})
        session = next(iter(recorded.values())) if len(recorded) == 1 else recorded.get(side.argument)
        if session is not None:
            from mcphost.host.verification.cases import as_recorded  # late: few runs read a recording

            # A server may offer more to a client that can do more.
            servers = {**config.servers, name: as_recorded(config.servers[name], session)}
            config = config.model_copy(update={"servers": servers})
    return config, found


async def _opened(host: Host, options: Namespace, sides: Sequence[_Side], remarks: Sequence[str]) -> Outcome:
    servers = [side.server for side in sides if side.server]
    status = StatusLine()
    status.show("listing what they offer", last=True)
    try:
        opened = await host.comparison.surfaces(servers, {side.server: side.entry for side in sides})
    finally:
        status.clear()
    surfaces, errors, more = list[Surfaces](), list[McphostError](), list(remarks)
    for side in sides:
        if side.surfaces is not None:
            surfaces.append(side.surfaces)
            continue
        found = opened[side.server]
        failed = [listing_failure(host, side.server, kind) for kind in CatalogKind]
        if found is None:
            errors.append(failure(host, side.server, {}, called=side.label))
        elif error := next(filter(None, failed), None):
            errors.append(error)
        else:
            surfaces.append({side.entry or side.server: found})
            more += [line for kind in CatalogKind for line in left_out(host, side.server, kind, called=side.label)]
    if errors:
        return Outcome("", worst_exit(errors), tuple(more), tuple(map(ErrorReport.from_error, errors)))
    return await asyncio.to_thread(_outcome, options, sides, surfaces, more, host.comparison.mask)


def _outcome(
    options: Namespace,
    sides: Sequence[_Side],
    surfaces: Sequence[Surfaces],
    remarks: Sequence[str],
    mask: Callable[[str], str] = str,
) -> Outcome:
    if any(side.sessions for side in sides):  # whose credentials are masked
        surfaces = [{name: as_kept(each, mask) for name, each in known.items()} for known in surfaces]
    pairs = list(_pairs(sides, *surfaces))
    compared = [
        ServerFindings(title, [masked(each, mask) for each in _found(before, after)], "no difference")
        for title, before, after in pairs
    ]
    text = json_text(_object(sides, compared)) if options.json else "".join(each.text for each in compared)
    file = next((side.word for side in sides if side.surfaces is not None and Path(side.word).is_file()), "")
    more = write_surface_reports(options, list(cases_of(compared, file)), "mcphost diff")
    differs = any(calls_for_attention(each.findings) for each in compared)
    return Outcome(text, Exit.NEGATIVE if differs else Exit.DONE, (*remarks, *more))


def _pairs(
    sides: Sequence[_Side], before: Surfaces, after: Surfaces
) -> Iterator[tuple[str, Surface | None, Surface | None]]:
    """The servers to compare with each other, each with a title. Raises ConfigError where that is not clear."""
    title = " → ".join(show_line(side.label) for side in sides)
    if len(before) == len(after) == 1:
        yield title, next(iter(before.values())), next(iter(after.values()))
        return
    if 1 in (len(before), len(after)):
        few, many = (before, after) if len(before) == 1 else (after, before)
        (name,) = few
        if name not in many:
            side = sides[1] if many is after else sides[0]
            raise ConfigError(
                f"{show_line(side.label)} has no server {show_line(name)}; it has: {_names(many)}; "
                f"choose one as {show_line(side.label)}#NAME"
            )
        yield title, before[name], after[name]
        return
    for name in sorted({*before, *after}):
        yield name, before.get(name), after.get(name)


def _found(before: Surface | None, after: Surface | None) -> list[SurfaceFinding]:
    if before is not None and after is not None:
        return compare_surfaces(before, after)
    severity, words = (BREAKING, "the server is gone") if after is None else (REVIEW, "the server is new")
    return [SurfaceFinding(severity, "item-removed" if after is None else "item-added", None, "", "", words)]


def _object(sides: Sequence[_Side], compared: Sequence[ServerFindings]) -> dict[str, Any]:
    return {
        "same": not any(each.findings for each in compared),
        "before": sides[0].label,
        "after": sides[1].label,
        "servers": [{"server": each.title, "findings": each.objects} for each in compared],
    }


def _names(surfaces: Surfaces) -> str:
    return ", ".join(show_line(name, 60) for name in surfaces)
