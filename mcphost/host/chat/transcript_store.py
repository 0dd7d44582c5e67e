"""Saves conversations: one private file of JSON lines for each, appended to as it goes on.

Lines are written by one thread of its own, in order, so that the event loop does not wait for the disk. A file that
cannot be written is an alarm, once.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from mcphost.config.state import as_plain, valid_part
from mcphost.errors import ConfigError, InvalidResult, UnknownName
from mcphost.host.chat.preferences import ChatSettings
from mcphost.host.chat.turns import Attachment, ModelRound, ModelToolUse, PromptUsed, Turn, TurnState, UserMessage
from mcphost.host.private_file import PrivateFile
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult, block_object, read_block
from mcphost.providers.base import TokenUsage
from mcphost.redaction import masked_value

if TYPE_CHECKING:
    from mcphost.protocol.models.skills import Skill

MOST_BYTES: Final = 256 << 20
"""Of a transcript that is read again."""

LISTED: Final = 500
"""Conversations that a list holds, the newest first."""

START: Final = 256 << 10
"""Bytes of a transcript that are read for a list."""

CLOSE_SECONDS: Final = 2.0

_SAID: Final = re.compile(
    rb'^\{"event": "turn", "turn": \d+, "message": \{"text": "((?:[^"\\\n]|\\u[0-9a-f]{4}|\\[^u]){,400})', re.MULTILINE
)
"""The start of a message's record, as this module writes it."""

_ID: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")

_SECOND: Final = len("20261123-120000")
"""Characters of an id that say when the conversation began; the others are random."""


@dataclass(frozen=True, slots=True)
class SavedChat:
    """A conversation in the state folder."""

    id: str
    title: str
    """The user's first message; may quote anything."""
    changed: datetime
    size: int
    """Bytes."""


class TranscriptStore:
    """The transcripts in ``folder`` (None: none is kept). ``mask`` takes secrets out, ``alarm`` takes a sentence."""

    def __init__(self, folder: Path | None, mask: Callable[[str], str], alarm: Callable[[str], None]) -> None:
        self._folder, self._mask, self._alarm = folder, mask, alarm
        self._jobs: SimpleQueue[tuple[Path, bytes] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarmed = False

    def keep(self, chat_id: str, record: Mapping[str, Any]) -> None:
        if self._folder is None:
            return
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write_all, name="transcripts", daemon=True)
            self._thread.start()
        # ASCII only: whatever a reader takes for the end of a line, or a terminal for a command, is escaped.
        line = json.dumps(masked_value(dict(record), self._mask), default=str)
        self._jobs.put((self._path(chat_id), line.encode("ascii") + b"\n"))

    async def aclose(self) -> None:
        """Write what is still to be written, if the disk answers."""
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    def saved(self) -> list[SavedChat]:
        """The saved conversations, the newest first. Waits for the disk."""
        if self._folder is None:
            return []
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".jsonl" and _ID.fullmatch(path.stem)]
        except OSError:
            return []
        paths.sort(key=_age, reverse=True)
        return [found for path in paths[:LISTED] if (found := _looked_at(path)) is not None]

    def records(self, chat_id: str) -> list[dict[str, Any]]:
        """All records of a conversation; lines that are none are left out. Waits for the disk.

        ``chat_id`` may be the beginning of one, or ``last``. Raises UnknownName, ConfigError.
        """
        path = self._path(self.full_id(chat_id))
        try:
            return [record for line in _read(path, MOST_BYTES).splitlines() if (record := _record(line)) is not None]
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from None

    def full_id(self, chat_id: str) -> str:
        """The one id that is meant. Raises UnknownName."""
        known = [each.id for each in self.saved()]
        found = known[:1] if chat_id == "last" else [each for each in known if chat_id and each.startswith(chat_id)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(known[:5]) or "none"
        raise UnknownName(f"{'several conversations begin' if found else 'no conversation begins'} with {chat_id!r}; "
                          f"the last are: {there}")  # fmt: skip

    def _path(self, chat_id: str) -> Path:
        assert self._folder is not None
        assert _ID.fullmatch(chat_id)
        return self._folder / f"{chat_id}.jsonl"

    def _write_all(self) -> None:
        files: dict[Path, PrivateFile] = {}  # each knows whether its last line was torn
        while (job := self._jobs.get()) is not None:
            path, line = job
            try:
                files.setdefault(path, PrivateFile(path)).append(line, MOST_BYTES)
            except OSError as error:
                self._tell(f"the conversation cannot be kept: {path}: {error.strerror or error}")

    def _tell(self, text: str) -> None:
        if not self._alarmed and self._loop is not None and not self._loop.is_closed():
            self._alarmed = True
            self._loop.call_soon_threadsafe(self._alarm, text)


def _age(path: Path) -> tuple[str, int]:
    """Sorts the oldest first: by the second in the id, and within one by the last change."""
    with suppress(OSError):
        return path.stem[:_SECOND], path.stat().st_mtime_ns
    return path.stem[:_SECOND], 0


def _looked_at(path: Path) -> SavedChat | None:
    try:
        start, found = _read(path, START), path.stat()
    except OSError:
        return None
    changed = datetime.fromtimestamp(found.st_mtime).astimezone()
    return SavedChat(path.stem, next(filter(None, _titles(start)), ""), changed, found.st_size)


def _titles(start: bytes) -> Iterator[str]:
    """The start of each message; its record may be far longer than what was read."""
    for said in _SAID.finditer(start):
        with suppress(ValueError):
            yield json.loads(b'"' + said[1] + b'"')[:200]


def _read(path: Path, limit: int) -> bytes:
    """The first bytes of a regular file of our own."""
    descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(limit)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


VERSION: Final = 1
"""Of the shapes below."""


def all_records(
    chat_id: str, branch_of: tuple[str, int] | None, settings: ChatSettings, turns: Iterable[Turn]
) -> Iterator[dict[str, Any]]:
    """A whole conversation, from its first record."""
    began = datetime.now().astimezone().isoformat(timespec="seconds")
    origin = None if branch_of is None else {"id": branch_of[0], "turns": branch_of[1]}
    yield {"event": "chat", "version": VERSION, "id": chat_id, "began": began, "branch_of": origin}
    yield settings_record(settings)
    for turn in turns:
        yield turn_record(turn)
        for answer in turn.rounds:
            yield round_record(turn, answer)
            yield results_record(turn, answer)
        yield ended_record(turn)


def settings_record(settings: ChatSettings) -> dict[str, Any]:
    """The record of the user's settings from here on."""
    return {"event": "choices", **as_plain(settings)}


def turn_record(turn: Turn) -> dict[str, Any]:
    """A message of the user's, or a turn taken up again."""
    return {"event": "turn", "turn": turn.number, "message": _message_record(turn.message)}


def round_record(turn: Turn, answer: ModelRound) -> dict[str, Any]:
    """An answer of the model's, as far as it came."""
    usage = answer.usage
    return {
        "event": "answer",
        "turn": turn.number,
        "round": _place(turn, answer),
        "entry": answer.entry,
        "model": answer.model,
        "outside": answer.outside,
        "text": answer.text,
        "thought": answer.thought,
        "stop": answer.stop_reason,
        "tokens": [usage.input_tokens, usage.output_tokens],
        "guessed": answer.guessed,
        "superseded": answer.superseded,
        "uses": [_use_record(use) for use in answer.uses],
    }


def results_record(turn: Turn, answer: ModelRound) -> dict[str, Any]:
    """The outcomes of the tool uses of an answer."""
    return {
        "event": "results",
        "turn": turn.number,
        "round": _place(turn, answer),
        "uses": [_result(use) for use in answer.uses],
    }


def ended_record(turn: Turn) -> dict[str, Any]:
    return {"event": "end", "turn": turn.number, "state": turn.state.name, "reason": turn.reason}


def _place(turn: Turn, answer: ModelRound) -> int:
    return next(place for place, each in enumerate(turn.rounds, 1) if each is answer)


def _message_record(message: UserMessage) -> dict[str, Any]:
    return {
        "text": message.text,
        "attachments": [_attachment_record(each) for each in message.attachments],
        "prompts": [_prompt_record(each) for each in message.prompts],
    }


def _attachment_record(each: Attachment) -> dict[str, Any]:
    return {
        "server": each.server,
        "name": each.name,
        "title": each.title,
        "size": each.size,
        "tokens": each.tokens,
        "outside": each.outside,
        "note": each.note,
        "blocks": [block_object(block) for block in each.blocks],
        **({"skill": each.skill.definition()} if each.skill else {}),
    }


def _prompt_record(each: PromptUsed) -> dict[str, Any]:
    return {
        "server": each.server,
        "prompt": each.prompt,
        "arguments": dict(each.arguments),
        "outside": each.outside,
        "note": each.note,
        "messages": [message.as_object() for message in each.messages],
    }


def _use_record(use: ModelToolUse) -> dict[str, Any]:
    found: dict[str, Any] = {"id": use.id, "name": use.name, "arguments": dict(use.arguments)}
    return found | ({"problem": use.problem, "raw": use.raw} if use.problem else {})


def _result(use: ModelToolUse) -> dict[str, Any]:
    return {
        "id": use.id,
        "server": use.server,
        "tool": use.tool,
        "call": use.number,
        "outcome": use.outcome,
        "sent": None if use.sent is None else dict(use.sent),
        "seconds": use.seconds,
        "outside": use.outside,
        "notes": list(use.notes),
        "result": _object(use),
    }


def _object(use: ModelToolUse) -> Mapping[str, Any] | None:
    return None if use.result is None else use.result.definition()


MEANWHILE = "mcphost ended meanwhile"


def replay(records: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns that these records tell of."""
    turns: list[Turn] = []
    for record in records:
        try:
            _take(turns, record)
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError, InvalidResult):
            continue
    for turn in turns:
        _settle(turn)
    return turns


def branch_of(records: Iterable[Mapping[str, Any]]) -> tuple[str, int] | None:
    """The conversation it was branched from, and how many of its turns it shares."""
    for record in records:
        match record:
            case {"event": "chat", "branch_of": {"id": str(origin), "turns": int(number)}}:
                return origin, number
    return None


def settings_of(records: Iterable[Mapping[str, Any]]) -> ChatSettings | None:
    """The user's settings at its end; None if none were recorded."""
    found = [record for record in records if record.get("event") == "choices"]
    return valid_part(ChatSettings, found[-1]) if found else None


def _take(turns: list[Turn], record: Mapping[str, Any]) -> None:
    match record.get("event"):
        case "turn" if record["turn"] == len(turns) + 1:
            turns.append(Turn(len(turns) + 1, _message(record["message"])))
        case "turn" if record["turn"] == len(turns):
            for each in turns[-1].rounds[-1:]:
                each.superseded = not each.stop_reason
        case "answer":
            _answer(turns[record["turn"] - 1], record)
        case "results":
            _results(turns[record["turn"] - 1].rounds[record["round"] - 1], record["uses"])
        case "end":
            turn = turns[record["turn"] - 1]
            turn.state, turn.reason = TurnState[record["state"]], str(record["reason"])


def _settle(turn: Turn) -> None:
    if not turn.state.ended:
        turn.state, turn.reason = TurnState.STOPPED, MEANWHILE
    for use in turn.uses:
        if not use.outcome:
            use.outcome = MEANWHILE
    last = turn.rounds[-1] if turn.rounds else None
    if last is not None and turn.state is TurnState.FAILED and not last.stop_reason:
        last.error = turn.reason


def _message(record: Mapping[str, Any]) -> UserMessage:
    attachments = tuple(map(_attachment, record["attachments"]))
    return UserMessage(str(record["text"]), attachments, tuple(map(_prompt, record["prompts"])))


def _attachment(record: Mapping[str, Any]) -> Attachment:
    blocks = tuple(
        block for block in map(read_block, record["blocks"]) if isinstance(block, TextContent | MediaContent)
    )
    names = str(record["server"]), str(record["name"]), str(record["title"])
    size, tokens, outside = int(record["size"]), int(record["tokens"]), bool(record["outside"])
    return Attachment(*names, blocks, size, tokens, outside, str(record["note"]), _skill(record.get("skill")))


def _skill(record: Any) -> Skill | None:
    """Raises InvalidResult."""
    from mcphost.protocol.models.skills import Skill

    return None if record is None else Skill.read(record)


def _prompt(record: Mapping[str, Any]) -> PromptUsed:
    messages = tuple(map(SamplingMessage.read, record["messages"]))
    arguments = {str(name): str(value) for name, value in record["arguments"].items()}
    names = str(record["server"]), str(record["prompt"])
    return PromptUsed(*names, arguments, messages, bool(record["outside"]), str(record["note"]))


def _answer(turn: Turn, record: Mapping[str, Any]) -> None:
    answer = ModelRound(str(record["entry"]), str(record["outside"]), str(record["model"]))
    answer.say(str(record["text"]))
    answer.think(str(record["thought"]))
    answer.stop_reason, answer.guessed = str(record["stop"]), bool(record["guessed"])
    answer.superseded = bool(record["superseded"])
    answer.usage = TokenUsage(*(each if type(each) is int and each >= 0 else None for each in record["tokens"][:2]))
    answer.uses = [_use(each) for each in record["uses"]]
    turn.rounds[int(record["round"]) - 1 :] = [answer]


def _use(record: Mapping[str, Any]) -> ModelToolUse:
    problem, raw = str(record.get("problem", "")), str(record.get("raw", ""))
    return ModelToolUse(str(record["id"]), str(record["name"]), dict(record["arguments"]), problem=problem, raw=raw)


def _results(answer: ModelRound, records: Iterable[Mapping[str, Any]]) -> None:
    known = {use.id: use for use in answer.uses}
    for each in records:
        use = known[each["id"]]
        use.server, use.tool, use.outcome = str(each["server"]), str(each["tool"]), str(each["outcome"])
        use.sent = None if each["sent"] is None else dict(each["sent"])
        use.seconds, use.outside = float(each["seconds"]), bool(each["outside"])
        use.notes = tuple(map(str, each["notes"]))
        use.result = None if each["result"] is None else ToolResult.read(each["result"])
