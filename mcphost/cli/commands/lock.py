"""``mcphost lock``: keeps what servers offer in a file, and says what differs from it."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcphost.cli.failures import BrokenServers, failure, left_out, listing_failure, unselected, worst_exit
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, json_text
from mcphost.cli.preparation import run_without_calls, select_servers
from mcphost.cli.report_formats import ReportedCase, claim_reports
from mcphost.cli.surface_reports import ServerFindings, cases_of, write_surface_reports
from mcphost.config.files import require_folder
from mcphost.config.state import folder_locked
from mcphost.config.surface_lock import LOCK_FILE, SurfaceLock, lock_text
from mcphost.errors import ConfigError, McphostError, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import calls_for_attention, compare_surfaces, masked
from mcphost.host.comparison.lock_file import (
    Lock,
    full_path,
    full_server,
    line_of,
    locked_server,
    open_lock,
    write_lock,
)
from mcphost.host.comparison.surface import Surface
from mcphost.lazy_dataclass import dataclass
from mcphost.redaction import Mask

if TYPE_CHECKING:
    from mcphost.host.host import Host


def run_lock(options: Namespace) -> int:
    """Write the lock, or with ``--check`` compare servers with it."""
    if not options.check and (options.junit or options.sarif):
        raise UsageError("--junit and --sarif report what --check finds; add it")
    claim_reports(options)
    chosen = select_servers(options, ignores_lock=True)
    path = Path(options.file or chosen.config.policy.lock or LOCK_FILE)
    require_folder(path)
    if (lock := _opened(path)) is None and options.check:
        raise ConfigError("there is no such lock; write it with mcphost lock", path=path)
    run = _LockRun(options, lock or _new_lock(path), chosen.names, chosen.broken)
    return run_without_calls(options, chosen, run.work)


def _opened(path: Path) -> Lock | None:
    try:
        return open_lock(path)
    except FileNotFoundError:
        return None


def _new_lock(path: Path) -> Lock:
    return Lock(path, SurfaceLock(version=1), {})


@dataclass(frozen=True, slots=True)
class _LockRun:
    options: Namespace
    lock: Lock
    names: Sequence[str]
    broken: BrokenServers

    async def work(self, host: Host) -> Outcome:
        """Compare every server with the lock, and without ``--check`` write it."""
        status = StatusLine()
        status.show("listing what the servers offer", last=True)
        try:
            surfaces = await host.comparison.surfaces(self.names, {name: name for name in self.names})
        finally:
            status.clear()
        errors: list[McphostError] = [error for _, error in unselected(self.broken, self.names)]
        known = dict[str, Surface]()
        for name, surface in surfaces.items():
            failed = failure(host, name, self.broken) if surface is None else _unlisted(host, name)
            if failed is not None:
                errors.append(failed)
            elif surface is not None:
                known[name] = surface
        remarks = [line for name in known for kind in CatalogKind for line in left_out(host, name, kind)]
        return await asyncio.to_thread(self._outcome, known, errors, remarks, host.comparison.mask)

    def _outcome(
        self, known: Mapping[str, Surface], errors: list[McphostError], remarks: list[str], mask: Mask
    ) -> Outcome:
        checks = bool(self.options.check)
        if checks:
            errors += [self._lacks(name) for name in known if self.lock.surface(name) is None]
        compared = [each for name, surface in known.items() if (each := self._compared(name, surface, mask))]
        text = self._text(compared)
        if checks:
            cases = [*self._cases(compared), *map(_failed, errors)]
            remarks += write_surface_reports(self.options, cases, "mcphost lock")
        else:
            remarks += self._write(known, mask)
        reports = tuple(map(ErrorReport.from_error, errors))
        differs = checks and any(calls_for_attention(each.findings) for each in compared)
        return Outcome(text, worst_exit(errors) or (Exit.NEGATIVE if differs else Exit.DONE), tuple(remarks), reports)

    def _lacks(self, name: str) -> ConfigError:
        others = ", ".join(self.lock.servers) or "none"
        sentence = f"has no server {name}; it has: {others}; to add it: mcphost lock {name}"
        return ConfigError(sentence, path=self.lock.path)

    def _compared(self, name: str, surface: Surface, mask: Mask) -> ServerFindings | None:
        before = self.lock.surface(name)
        if before is None:
            kinds = (kind for kind in CatalogKind if kind is not CatalogKind.RESOURCES)
            counts = [
                f"{len(items)} {kind.value.removesuffix('s') if len(items) == 1 else kind.value}"
                for kind in kinds
                if (items := surface.kinds.get(kind))
            ]
            new = f"new in the lock, with {', '.join(counts) or 'no tools'}"
            return None if self.options.check else ServerFindings(name, (), new)
        found = compare_surfaces(before, surface)
        return ServerFindings(name, [masked(each, mask) for each in found], "as locked")

    def _text(self, compared: Sequence[ServerFindings]) -> str:
        if self.options.json:
            return "".join(json_text(self._object(each)) for each in compared)
        return "".join(each.text for each in compared)

    @staticmethod
    def _object(each: ServerFindings) -> dict[str, Any]:
        return {"server": each.title, "same": not each.findings, "findings": each.objects}

    def _cases(self, compared: Sequence[ServerFindings]) -> Iterator[ReportedCase]:
        text = lock_text(self.lock.content)
        file = os.path.relpath(self.lock.path)
        yield from cases_of(compared, file, lambda server, found: line_of(text, server, found.kind, found.item))

    def _write(self, known: Mapping[str, Surface], mask: Mask) -> list[str]:
        """Replace the entries of these servers in the lock, whose other entries may have changed meanwhile."""
        if not known:
            return []
        path = self.lock.path.resolve()
        with folder_locked(path):
            lock = _opened(path) or _new_lock(path)
            servers, full = dict(lock.content.servers), dict(lock.full)
            for name, surface in known.items():
                before = servers.get(name)
                resources = self.options.resources or (before is not None and before.resources is not None)
                servers[name] = locked_server(surface, mask, resources=resources)
                full[name] = full_server(surface, mask, resources=resources)
            content = SurfaceLock(version=1, servers=servers)
            keeps_full = self.options.full or full_path(path).exists()
            if content == lock.content and (full == lock.full or not keeps_full):
                return [f"{self.lock.path} is up to date"]
            write_lock(path, content, full if keeps_full else None)
        count = len(known)
        return [f"{count} {'server' if count == 1 else 'servers'} written to {self.lock.path}"]


def _unlisted(host: Host, name: str) -> McphostError | None:
    """Why a list of the server is not known; None where all are."""
    return next(filter(None, (listing_failure(host, name, kind) for kind in CatalogKind)), None)


def _failed(error: McphostError) -> ReportedCase:
    return ReportedCase("servers", str(error).partition(":")[0], "error", str(error))
