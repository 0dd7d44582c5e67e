"""``mcphost chat``: sends one message to a language model and streams the answer to stdout."""

from __future__ import annotations

import asyncio
import os
import re
import select
import shlex
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcphost.cli.approver import NO_CUT, confirmed, question_lines, typed_line
from mcphost.cli.commands.call import read_arguments, typed_arguments
from mcphost.cli.commands.chat_output import turn_printer
from mcphost.cli.failures import BrokenServers, failure, listing_failure
from mcphost.cli.margin import MARK, behind_margin, framed
from mcphost.cli.output import Exit, Outcome, is_terminal, json_text, remark, table
from mcphost.cli.preparation import load_config, run_with_answers
from mcphost.cli.run import finish
from mcphost.cli.skill_questions import ask_about_skill
from mcphost.cli.terminal import has_terminal, say, terminal_size
from mcphost.composition import select as select_configured
from mcphost.config import Config, rule_matches, state_folder
from mcphost.config.model_providers import EXAMPLE_ENTRY, OTHER_PROVIDERS
from mcphost.errors import ConfigError, InvalidArguments, McphostError, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.host.chat.attachments import SkillMention, is_file, parse, skill_mention
from mcphost.host.chat.export import markdown
from mcphost.host.chat.model_messages import MessagePreview
from mcphost.host.chat.transcript_store import TranscriptStore, replay
from mcphost.host.consent.questions import Answer, Question, ResultQuestion, SkillQuestion, ToolCallQuestion
from mcphost.host.events import ChatChanged
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line, show_name, size_text

if TYPE_CHECKING:
    from mcphost.host.host import Host

PIPE_SECONDS: Final = 3.0
"""Wait for the first byte of stdin; some programs start others with a pipe that never ends."""

PIPE_BYTES: Final = 16_000_000

NO_MODEL: Final = (
    f"no language model is configured; add {EXAMPLE_ENTRY.replace(chr(10), ', ')} to your configuration "
    f"(mcphost config path says where it is); provider can also be {OTHER_PROVIDERS}"
)


def run_chat(options: Namespace) -> int:
    """Send a message to a model, or list or export saved chats."""
    kept = state_folder(os.environ) / "chats"
    if options.saved or options.export is not None:
        return finish(list_saved(kept, as_json=options.json) if options.saved else export(kept, options.export))

    text, approver = " ".join(options.words), ChatApprover(options.allow, options.deny)
    skills = tuple(map(_skill, options.skills))
    found = load_config(options, options.servers)
    chosen = select_configured(found, options.servers)
    try:
        config = with_models(chosen.config, found.problems, options.max_rounds)
    except ConfigError:
        for each in skills:
            command = shlex.join(["mcphost", "skill", "read", each.server, each.skill])
            remark(f"a skill is for a model; without one, read it: {show_line(command)}")
        raise
    piped = read_pipe(wait=not text)
    if not text.strip() and not piped.strip() and not options.skills:
        raise UsageError("there is nothing to say; write: mcphost chat 'TEXT'")
    named = chosen.names if options.servers else ()
    requested = ChatRequested(text, piped, options.model, options.resume, named, options.json, skills)
    return run_with_answers(
        options,
        replace(chosen, config=config),
        approver,
        lambda host: chat(host, requested, chosen.broken),
        prefetch=True,  # a message may name any prompt and resource
    )


@dataclass(frozen=True, slots=True)
class ChatRequested:
    """The message to send, and to which model."""

    text: str
    piped: str = ""
    model: str = ""
    resume: str = ""
    """The id of an earlier chat, the start of that id, or ``last``."""
    servers: tuple[str, ...] = ()
    """The servers named on the command line, which must be ready."""
    as_json: bool = False
    skills: tuple[SkillMention, ...] = ()
    """The skills that the model is to act on."""


def _skill(written: str) -> SkillMention:
    """Read the value of ``--skill``. Raises UsageError."""
    named = skill_mention(written)
    if named.problem:
        raise UsageError(f"{written!a} is not a skill; write SERVER:SKILL, with the name or the URI of the skill")
    return named


def with_models(config: Config, problems: Iterable[ConfigError], max_rounds: int | None) -> Config:
    """The configuration of this run; ``problems`` of models become remarks.

    Raises ConfigError where no model is configured.
    """
    for problem in problems:
        if problem.message.startswith("models"):
            remark(str(problem))
    if not any(model.provider != "manual" for model in config.models.values()):
        raise ConfigError(NO_MODEL)
    if max_rounds is None:
        return config
    return config.model_copy(update={"chat": config.chat.model_copy(update={"max_rounds": max_rounds})})


def read_pipe(*, wait: bool) -> str:
    """The text on stdin where it is a pipe or a file; empty after `PIPE_SECONDS` without a byte, unless ``wait``."""
    if sys.stdin is None or is_terminal(sys.stdin):
        return ""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not wait and not select.select([descriptor], [], [], PIPE_SECONDS)[0]:
        remark(f"nothing came from stdin within {PIPE_SECONDS:g} s; continuing without it")
        return ""
    data = bytearray()
    while len(data) <= PIPE_BYTES and (part := os.read(descriptor, 1 << 16)):
        data += part
    if len(data) > PIPE_BYTES:
        remark(f"stdin holds more than {size_text(PIPE_BYTES)}; the rest is ignored")
    return bytes(data[:PIPE_BYTES]).decode("utf-8", "replace")


def list_saved(folder: Path, *, as_json: bool) -> Outcome:
    """``--saved``: lists saved chats, the newest first."""
    found = TranscriptStore(folder, str, remark).saved()
    if as_json:
        named = ({"id": each.id, "title": each.title, "changed": each.changed.isoformat()} for each in found)
        return Outcome("".join(map(json_text, named)))
    if not found:
        return Outcome(remarks=("there are no saved conversations",))
    rows = [(each.id, f"{each.changed:%Y-%m-%d %H:%M}", show_line(each.title, 80)) for each in found]
    return Outcome(table([("ID", "CHANGED", "TITLE"), *rows]))


def export(folder: Path, chat_id: str) -> Outcome:
    """``--export``: a saved chat as Markdown. Raises UnknownName, ConfigError."""
    turns = replay(TranscriptStore(folder, str, remark).records(chat_id))
    title = next((turn.message.text for turn in turns if turn.message.text), chat_id)
    return Outcome(markdown(title[:100], turns))


class ChatApprover:
    """Approves a model's calls by ``--deny``, ``--allow``, then the person at the terminal; without one it declines."""

    def __init__(self, allow: Sequence[str], deny: Sequence[str]) -> None:
        for rule in (*allow, *deny):
            if not all(rule.partition(":")):
                raise UsageError(f'{rule!a} is not a rule; write server:tool, with * for any, as in --allow "git:*"')
        self._allow, self._deny = allow, deny

    async def ask(self, question: Question) -> Answer:
        present = has_terminal()
        if isinstance(question, ResultQuestion):
            unseen = Answer(False, by="policy", reason="it could not be shown to the user")
            return await _ask_about_result(question) if present else unseen
        if isinstance(question, SkillQuestion):
            return await ask_about_skill(question) if present else _unapproved(question)
        if not isinstance(question, ToolCallQuestion):
            return Answer(allow=False, reason="this cannot be asked on a terminal", by="policy")
        name = f"{question.server}:{question.tool.name}"
        if self._fits(self._deny, question):
            return Answer(allow=False, reason="--deny", by="policy")
        # While the model acts on a skill, too: the option is given for this run, with its skills in view.
        if self._fits(self._allow, question):
            return Answer(allow=True, by="--allow", reason="--allow")
        if present:
            return await _ask_about_call(question)
        remark(
            f"declined: {show_line(name)}; there is no terminal to ask on, add --allow {show_line(name)} to allow it"
        )
        return Answer(allow=False, reason="there is no terminal to ask on", by="policy")

    @staticmethod
    def _fits(rules: Sequence[str], question: ToolCallQuestion) -> bool:
        return any(rule_matches(rule, question.server, question.tool.name) for rule in rules)


def _unapproved(question: SkillQuestion) -> Answer:
    """Decline a skill that no remembered approval covers."""
    reason = "there is no terminal to ask on; approve it for good at a terminal or on screen"
    return Answer(allow=False, reason=reason, by="policy")


async def _ask_about_call(question: ToolCallQuestion) -> Answer:
    _end_line()
    asked = question
    while True:
        say(*question_lines(asked))
        what = f"{show_name(question.tool.name)} on {question.server}"
        line = await typed_line(
            f"Let {show_line(question.origin)} run {what}? [y/N, name=value changes it, or why not] "
        )
        changed = _with_changed_argument(asked, line)
        if changed is None:
            break
        asked = changed
    if line.lower() in ("y", "yes"):
        return Answer(allow=True, arguments=None if asked is question else asked.arguments)
    return Answer(allow=False, reason="" if line.lower() in ("", "n", "no") else line)


def _with_changed_argument(question: ToolCallQuestion, line: str) -> ToolCallQuestion | None:
    """The question with the argument that ``name=value`` or ``name:=JSON`` changes; None where ``line`` is neither."""
    name = line.partition("=")[0].removesuffix(":")
    properties = question.tool.input_schema.get("properties")
    if "=" not in line or not (name in question.arguments or (isinstance(properties, Mapping) and name in properties)):
        return None
    try:
        given = typed_arguments(read_arguments([line], None), question.tool.input_schema)
    except InvalidArguments as error:
        say(f"  Not changed: {show_line(str(error), 1000)}")
        return question
    arguments = {**question.arguments, **given}
    return replace(question, arguments=arguments, provenance=question.provenance.after(arguments))


async def _ask_about_result(question: ResultQuestion) -> Answer:
    _end_line()
    title = f"{question.server} › {show_name(question.tool)} answered"
    say(*framed(title, show(question.text), terminal_size()[0]))
    facts = [f"{question.tokens} tokens", f"{question.hidden} hidden characters", f"{len(question.links)} links"]
    say(f"  {question.server}:{show_line(question.tool)} answered this: {', '.join(facts)}")
    return Answer(allow=await confirmed(f"Show it to {show_line(question.origin)}? [y/N] "))


async def _may_send(preview: MessagePreview) -> bool:
    """Show the texts of prompts and skills, which come from servers, before they are sent."""
    if has_terminal() and preview.must_be_read:
        say(*_preview_lines(preview))
        return await confirmed(f"Send this to {show_line(preview.model)}? [y/N] ")
    if preview.acting:  # approved before; what the model gets can be read all the same
        for line in _preview_lines(preview):
            remark(line.rstrip())
    return True


def _preview_lines(preview: MessagePreview) -> Iterator[str]:
    for piece in preview.pieces:
        note = f"; {show_line(piece.note)}" if piece.note else ""
        yield f"  {piece.title}: {size_text(piece.size)}, about {piece.tokens} tokens{note}"
        if piece.must_be_read:
            text = show(piece.text, limit=NO_CUT, joiners=True)
            yield from behind_margin(text, terminal_size()[0], f"    {MARK}").splitlines()
    yield from (f"  skill {words}" for words in preview.acting)
    hidden = f", {preview.hidden} hidden characters" if preview.hidden else ""
    yield f"  together about {preview.tokens} tokens{hidden}; besides, each request has about {preview.besides}"


def _end_line() -> None:
    """Start a new line where the answer is on the same terminal."""
    if is_terminal(sys.stdout):
        say("")


async def chat(host: Host, request: ChatRequested, broken: BrokenServers) -> Outcome:
    """Send the message and print the turn. Raises what prevents asking the model."""
    await _start_servers(host, request, broken)
    if request.resume:
        talk = await host.chats.resume(request.resume, model=request.model, as_configured=True)
    else:
        talk = host.chats.begin(model=request.model, as_configured=True)
    await talk.tools_checked()
    for dropped in talk.tools.dropped:
        remark(f"without {dropped.server}:{show_line(dropped.tool)}: {dropped.reason}")
    made = await host.chats.attachments.compose(request.text, request.skills)
    for words in await asyncio.to_thread(_unresolved_mentions, made.text, list(host.servers)):
        remark(words)
    piped = [host.chats.attachments.text("stdin", request.piped)] if request.piped.strip() else []
    parts = made.text, [*piped, *made.attachments], made.prompts
    if not await _may_send(talk.preview(*parts)):
        return Outcome(code=Exit.DECLINED, remarks=("nothing was sent",))
    teller = turn_printer(talk, as_json=request.as_json)
    changed = asyncio.Event()

    def heard(event: ChatChanged) -> None:
        if event.chat == talk.number:
            changed.set()

    stop = host.bus.observe(heard, ChatChanged)
    try:
        turn = talk.send(*parts)
        while not turn.state.ended:
            await changed.wait()
            changed.clear()
            teller.tell(turn)
        return teller.end(turn)
    finally:
        stop()
        teller.rest()


def _unresolved_mentions(text: str, servers: Sequence[str]) -> list[str]:
    """Sentences about mentions that attach nothing, mostly mistyped names."""
    names = [mention.name for mention in parse(text, servers).mentions if not mention.server]
    left = [
        f"@{name} is neither a file nor a resource of a server; it is sent as text"
        for name in names
        if not is_file(name)
    ]
    if named := re.match(r"/([^\s:/]+):\S", text):
        left.append(f"no server is called {named[1]!r}; what begins with /{named[1]}: is sent as text")
    return left


async def _start_servers(host: Host, request: ChatRequested, broken: BrokenServers) -> None:
    """Wait for the servers of this run. Raises where one that was named is missing."""
    await host.servers.ready(request.servers or None)
    for name in broken.keys() - host.servers.keys():
        remark(f"without {name}: {broken[name]}")
    for name, server in host.servers.items():
        if server.config.start == "manual" and name not in request.servers:
            continue
        try:
            await host.resources.current(name, CatalogKind.TOOLS)
            missing: McphostError | None = listing_failure(host, name, CatalogKind.TOOLS)
        except McphostError:
            missing = failure(host, name, broken)
        if missing and name in request.servers:
            raise missing
        if missing:
            remark(f"without {missing}")
