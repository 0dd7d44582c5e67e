"""Answers server requests without a screen: by rules of a file or of flags, else by a person at the terminal.

`mcphost.cli.server_questions` asks that person. The host checks every answer before it is sent.
"""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.json_input import read_json
from mcphost.cli.output import remark
from mcphost.cli.terminal import has_terminal
from mcphost.config.files import text_of
from mcphost.errors import ConfigError, UsageError
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import (
    Answer,
    Approver,
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
)
from mcphost.host.server_requests.folders import check_folder
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS, SAMPLING, WRITING
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, size_text

if TYPE_CHECKING:
    from mcphost.cli.server_questions import TerminalPerson
    from mcphost.config.state import StateStore
    from mcphost.host.host import Host
    from mcphost.host.sampling.request import SamplingEdit, SamplingReply

KINDS: Final[Mapping[type, str]] = {
    FormQuestion: "form",
    UrlQuestion: "url",
    RootsQuestion: "roots",
    SamplingQuestion: "sampling",
}
ACTIONS: Final = ("accept", "decline", "cancel")
FILE_BYTES: Final = 4_000_000
"""Size limit of a file of answers, which a person writes."""

REMARKS: Final = "remarks"
"""The state file with the remarks that are made once a day."""

MESSAGE: Final = 500
"""Characters of a server's words in a remark."""

_TEXTS: Final = frozenset({"kind", "server", "tool", "action", "reason", "text", "model"})
_KEYS: Final = _TEXTS | {"content", "paths", "remember"}


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """An answer to matching questions. ``server`` and ``tool`` are patterns; ``where`` names the rule to people."""

    where: str
    action: str
    kind: str = "*"
    server: str = "*"
    tool: str = "*"
    content: Mapping[str, Any] | None = None
    """The values of forms, of which each gets those that it asks for; None: its defaults."""
    paths: tuple[Path, ...] = ()
    """The folders to share; empty: the first suggestion."""
    remember: bool = False
    reason: str = ""
    text: str | None = None
    """The answer to a sampling request, in place of a model's."""
    model: str | None = None
    """The entry of ``[models]`` to ask; None: the one that fits the server's preferences."""

    def fits(self, kind: str, server: str, tool: str) -> bool:
        """True if the rule matches a question."""
        pairs = ((self.kind, kind), (self.server, server), (self.tool, tool))
        return all(fnmatchcase(value, pattern) for pattern, value in pairs)

    def answer(self, question: Question) -> Answer:
        content: Any = self.content
        if isinstance(question, FormQuestion) and self.content is not None:
            content = _asked_for(self.content, question.schema)
        elif isinstance(question, RootsQuestion):
            content = self.paths or question.suggestions[:1]
        elif isinstance(question, UrlQuestion):
            content = None
        elif isinstance(question, SamplingQuestion):
            content = self._of_a_model(question)
        lifetime = Lifetime.ALWAYS if self.remember else Lifetime.ONCE
        accepts = self.action == "accept"
        cancelled, reason = self.action == "cancel", self.reason or self.where
        return Answer(accepts, lifetime, content=content, reason=reason, by=self.where, cancelled=cancelled)

    def _of_a_model(self, question: SamplingQuestion) -> SamplingEdit | SamplingReply | None:
        from mcphost.host.sampling.request import SamplingEdit, SamplingReply  # late: most runs ask no model

        if self.text is not None:
            return SamplingReply.of(self.text)
        return None if question.review or self.model is None else SamplingEdit(model=self.model)


def read_rules(file: str | None, accept: Sequence[str], decline: Sequence[str]) -> list[AnswerRule]:
    """The rules of a command line, the strongest first: --decline, the file, --accept. Raises ConfigError."""
    from_file = [] if file is None else _from_file(Path(file))
    return [*_flags("decline", decline), *from_file, *_flags("accept", accept)]


class RuleApprover:
    """Answers server requests by ``rules``, then by ``person`` if given; ``calls`` approves tool calls.

    ``store`` remembers which remarks were made today.
    """

    def __init__(
        self, rules: Sequence[AnswerRule], calls: Approver, person: TerminalPerson | None, store: StateStore
    ) -> None:
        self._rules, self._calls, self._person, self._store = rules, calls, person, store
        self.asking = asyncio.Lock()
        """Held while a person at the terminal is asked."""

    @property
    def answers(self) -> frozenset[str]:
        """The kinds of server requests that this run can answer."""
        writes = self._person is not None or any(rule.text is not None for rule in self._rules)
        return DIALOG_KINDS | {SAMPLING, WRITING} if writes else DIALOG_KINDS | {SAMPLING}

    def attach(self, host: Host) -> None:
        """Look up in this host what a question refers to."""
        wanted = [rule for rule in self._rules if rule.kind == "sampling" and rule.action == "accept"]
        if wanted and not host.config.models and WRITING not in self.answers:
            remark(f"{wanted[0].where}: no language model is configured, so sampling is offered to no server")
        if self._person is not None:
            self._person.samplings = host.sampling.all

    async def ask(self, question: Question) -> Answer:
        """See `mcphost.host.consent.questions.Approver`. A person gets one question at a time."""
        kind = KINDS.get(type(question))
        if kind is None:
            async with self.asking:
                return await self._calls.ask(question)
        tool = getattr(question, "tool", "")
        rule = next((rule for rule in self._rules if rule.fits(kind, question.server, tool)), None)
        if rule is not None:
            return _report_rule(question, rule.answer(question))
        if self._person is None:
            return await self._nobody(kind, question)
        async with self.asking:
            return await self._person.ask(question)

    async def _nobody(self, kind: str, question: Question) -> Answer:
        flag = f"--accept {kind}:{question.server}"
        # Most servers that ask for roots do so in every session, and go on without them.
        if kind != "roots" or not await asyncio.to_thread(_said_today, self._store, question.server):
            remark(
                f"{question.server} asked you to {question.about}: declined; add {flag} or --answers FILE to allow it"
            )
        return Answer(False, reason=f"there is no terminal to ask on; add {flag} to allow it", by="policy")


def _said_today(store: StateStore, server: str) -> bool:
    """True if the remark on a server's roots was made today; records that it was. Blocks on the disk."""
    today, known = date.today(), dict[str, date]()

    def change(data: Mapping[str, Any]) -> Mapping[str, Any]:
        said = data.get("roots")
        known.update({name: day for name, day in said.items() if day == today} if isinstance(said, Mapping) else {})
        return {"roots": {**known, server: today}}

    try:
        store.update(REMARKS, change)
    except ConfigError:
        return False
    return server in known


def approver_with(rules: Sequence[AnswerRule], calls: Approver, store: StateStore) -> RuleApprover:
    """The approver of this run, with a person where there is a terminal."""
    person: TerminalPerson | None = None
    if has_terminal():
        from mcphost.cli.server_questions import TerminalPerson  # late: most runs have none

        person = TerminalPerson()
    return RuleApprover(rules, calls, person, store)


def read_roots(paths: Sequence[str]) -> tuple[Path, ...]:
    """The folders of ``--root``. Raises ConfigError where a folder cannot be shared."""
    looks = [check_folder(Path(os.path.abspath(os.path.expanduser(path)))) for path in paths]
    for path, seen in zip(paths, looks, strict=True):
        if seen.problem:
            raise ConfigError(f"--root {path}: {seen.problem}")
    return tuple(seen.path for seen in looks)


def _asked_for(content: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that a form has a field for: the others are meant for other forms."""
    fields = schema.get("properties")
    return {name: value for name, value in content.items() if isinstance(fields, Mapping) and name in fields}


def _report_rule(question: Question, answer: Answer) -> Answer:
    """Report an answer by rule that agrees to a page, with all that a person would be shown, or shares a folder."""
    if answer.allow and isinstance(question, UrlQuestion) and question.address is not None:
        address = question.address
        remark(f"{question.server} asks you to visit this page ({answer.by}): {show_line(address.opens, 8192)}")
        if question.message:
            remark(f"{question.server} says: {show_line(question.message, MESSAGE)}")
        if address.readable_host != address.host:
            remark(f"▲ beware: the host reads {show_line(address.readable_host, MESSAGE)}")
        for warning in question.warnings:
            remark(f"▲ beware: {warning}")
    if answer.allow and isinstance(question, RootsQuestion):
        folders = ", ".join(show_line(str(path), 4096) for path in answer.content) or "no folder"
        remark(f"{question.server} gets these roots: {folders} ({answer.by})")
    return answer


def _flags(action: str, words: Sequence[str]) -> list[AnswerRule]:
    return [_flag(action, word) for word in words]


def _flag(action: str, word: str) -> AnswerRule:
    kind, colon, server = word.partition(":")
    if kind not in KINDS.values() or (colon and not server):
        raise UsageError(f"--{action} {word!a}: write KIND or KIND:SERVER, KIND one of {', '.join(KINDS.values())}")
    return AnswerRule(f"--{action} {word}", action, kind, server or "*")


def _from_file(path: Path) -> list[AnswerRule]:
    listed = _read(path).get("answer")
    if not isinstance(listed, list):
        raise ConfigError('holds no list called "answer"', path=path)
    return [_rule(path, number, entry) for number, entry in enumerate(listed, 1)]


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise ConfigError(f"is larger than {size_text(FILE_BYTES)}", path=path)
        text = text_of(data)
        start = text.lstrip()[:2]
        is_json = start[:1] in ("{", "[") and start != "[[" and path.suffix != ".toml"  # [[answer]] is TOML
        found = read_json(text) if is_json else tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8; save the file as UTF-8", path=path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    except ValueError as error:
        raise ConfigError(f"is neither JSON nor TOML that can be read: {error}", path=path) from None
    return found if isinstance(found, dict) else {"answer": found}


def _rule(path: Path, number: int, entry: object) -> AnswerRule:
    where = f"answer {number} of {path.name}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is not a table", path=path)
    if unknown := entry.keys() - _KEYS:
        raise ConfigError(f"{where}: {min(unknown)!a} is none of {', '.join(sorted(_KEYS))}", path=path)
    for key in _TEXTS & entry.keys():
        if not isinstance(entry[key], str):
            raise ConfigError(f"{where}: {key} must be text", path=path)
    given = {"action": "accept", **entry}
    for key, words in (("action", ACTIONS), ("kind", (*KINDS.values(), "*"))):
        if given.get(key, words[0]) not in words:
            raise ConfigError(f"{where}: {key} must be one of {', '.join(words)}", path=path)
    return AnswerRule(where, **(given | _checked(path, where, given)))


def _checked(path: Path, where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not text. Relative paths start at the file's folder."""
    content, paths, remember = given.get("content"), given.get("paths", []), given.get("remember", False)
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{where}: content must be a table", path=path)
    if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise ConfigError(f"{where}: paths must be a list of texts", path=path)
    if not isinstance(remember, bool):
        raise ConfigError(f"{where}: remember must be true or false", path=path)
    folder = path.absolute().parent
    return {
        "content": content,
        "paths": tuple(folder / Path(each).expanduser() for each in paths),
        "remember": remember,
    }
