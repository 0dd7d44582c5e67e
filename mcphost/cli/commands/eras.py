"""``mcphost check --era``: which eras of the protocol servers speak, and how that was found out."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcphost.cli.failures import BrokenServers, failure, reason_of, unselected, worst_exit
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, json_text, table
from mcphost.cli.parser import ERA_CHOICES
from mcphost.cli.preparation import run_without_calls, select_servers
from mcphost.composition import Selection
from mcphost.config import ServerConfig
from mcphost.errors import (
    ConfigError,
    HttpStatusError,
    McphostError,
    NoAnswerFound,
    PeerError,
    ProbeFailed,
    ServerError,
)
from mcphost.host.comparison.sides import ERAS, EraName, in_era
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from mcphost.host.host import Host

HEADING = ("SERVER", "SPEAKS", "LEGACY (initialize)", "MODERN (server/discover)")

FORBIDS = '; protocol = "modern" forbids'
"""Follows the answer in the reason of a copy that may only be modern, which no entry says."""


@dataclass(frozen=True, slots=True)
class EraCheck:
    """The attempt to open a server in one era. ``answer`` is what it answered, ``failure`` is None if it was opened."""

    revision: str
    answer: str
    failure: McphostError | None = None
    known: bool = True
    """False if the answer does not show whether the server speaks the era, as after silence or an outage."""

    def as_object(self) -> dict[str, Any]:
        """For ``--json``; ``speaks`` is null where that is not known."""
        speaks = self.failure is None if self.known else None
        return {"speaks": speaks, "protocolVersion": self.revision or None, "answer": self.answer}


@dataclass(frozen=True, slots=True)
class ServerEras:
    name: str
    eras: Mapping[EraName, EraCheck]

    @property
    def speaks(self) -> list[EraName]:
        return [era for era in ERAS if self.eras[era].failure is None]

    def fails(self, wanted: str) -> Exit:
        """The exit code, if these eras are wanted."""
        if not self.speaks:
            return worst_exit([check.failure for check in self.eras.values() if check.failure])
        asked = ERAS if wanted == "both" else tuple(era for era in ERAS if era == wanted)
        if not all(self.eras[era].known for era in asked):
            return Exit.NOT_CONNECTED
        return Exit.DONE if all(era in self.speaks for era in asked) else Exit.NEGATIVE

    def as_object(self) -> dict[str, Any]:
        return {
            "server": self.name,
            "speaks": self.speaks,
            **{era: check.as_object() for era, check in self.eras.items()},
        }

    def as_row(self) -> tuple[str, ...]:
        unknown = [f"{era} is not known" for era in ERAS if not self.eras[era].known]
        spoken = " and ".join(self.speaks) or ("" if unknown else "neither")
        return self.name, "; ".join(filter(None, [spoken, *unknown])), *(self.eras[era].answer for era in ERAS)


def run_check_eras(options: Namespace) -> int:
    """Open each server in both eras, and report which it speaks."""
    wanted = options.era
    if wanted not in (*ERA_CHOICES, "any"):  # ``check --era SERVER``: the word is not an era
        options.servers, wanted = [wanted, *options.servers], "any"
    chosen = select_servers(options)
    copied, names, impossible = _copies(chosen)
    return run_without_calls(
        options,
        copied,
        lambda host: check_eras(host, names, impossible, chosen.broken, wanted, as_json=options.json),
    )


Copies = dict[str, dict[EraName, str]]
Impossible = dict[tuple[str, EraName], ConfigError]


def _copies(chosen: Selection) -> tuple[Selection, Copies, Impossible]:
    """The selection with two copies of each server, their names, and the eras that an entry rules out."""
    config, names, impossible = chosen.config, Copies(), Impossible()
    servers: dict[str, ServerConfig] = {}
    for name in chosen.names:
        names[name] = {}
        for era in ERAS:
            try:
                config, side = in_era(config, name, era)
            except ConfigError as error:
                impossible[name, era] = error
            else:
                names[name][era], servers[side.server] = side.server, config.servers[side.server]
    only = config.model_copy(update={"servers": servers})
    return Selection(only, tuple(servers), chosen.broken), names, impossible


async def check_eras(
    host: Host, names: Copies, impossible: Impossible, broken: BrokenServers, wanted: str, *, as_json: bool
) -> Outcome:
    """Open all copies at once, and report."""
    status = StatusLine()
    status.show(
        f"opening {len(names)} servers in both eras" if len(names) > 1 else "opening it in both eras", last=True
    )
    try:
        await host.servers.ready([copy for copies in names.values() for copy in copies.values()])
    finally:
        status.clear()
    found = [ServerEras(name, _checks(host, name, copies, impossible, broken)) for name, copies in names.items()]
    text = _text(found, as_json=as_json)
    left = [error for _, error in unselected(broken, [copy for copies in names.values() for copy in copies.values()])]
    codes = [*(each.fails(wanted) for each in found), *map(worst_exit, ([error] for error in left))]
    remarks = [
        f"{each.name}: {era}: {each.eras[era].answer}"
        for each in found
        for era in ERAS
        if not as_json and show_line(each.eras[era].answer, 10_000) not in text
    ]
    return Outcome(text, _worst(codes), tuple(remarks), tuple(map(ErrorReport.from_error, left)))


def _worst(codes: Sequence[Exit]) -> Exit:
    """A configuration error wins, then a server that speaks nothing."""
    bad = [code for code in codes if code is not Exit.DONE]
    return next((code for code in (Exit.USAGE, Exit.NOT_CONNECTED, *bad) if code in bad), Exit.DONE)


def _checks(
    host: Host, name: str, copies: Mapping[EraName, str], impossible: Impossible, broken: BrokenServers
) -> dict[EraName, EraCheck]:
    return {
        era: _check(host, copies[era], broken)
        if era in copies
        else EraCheck("", str(impossible[name, era]), impossible[name, era])
        for era in ERAS
    }


def _check(host: Host, copy: str, broken: BrokenServers) -> EraCheck:
    connection = host.servers[copy]
    session = connection.session
    if not connection.ready or session is None:
        answer = reason_of(host, connection).partition(FORBIDS)[0]
        return EraCheck("", answer, failure(host, copy, broken), _is_answer(connection.failure))
    version = session.revision.version
    if not session.evidence:
        return EraCheck(version, f"agreed on {version}")
    listed = f"; it lists {', '.join(show_line(each, 20) for each in session.versions[:8])}" if session.versions else ""
    return EraCheck(version, f"{session.evidence}{listed}")


def _is_answer(failure: McphostError | None) -> bool:
    """True unless the server was silent or out of reach; a program that exits at a question has answered."""
    if isinstance(failure, HttpStatusError):
        return failure.lasting
    answers = isinstance(failure, PeerError | ServerError | ProbeFailed | ConfigError)
    return answers and not isinstance(failure, NoAnswerFound)


def _text(found: Sequence[ServerEras], *, as_json: bool) -> str:
    if as_json:
        return "".join(json_text(each.as_object()) for each in found)
    return table([HEADING, *(each.as_row() for each in found)])
