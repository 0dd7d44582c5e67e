"""Finds the files, resources and prompts that a message names, and reads them for a model.

Their content is never searched for further names.

Specification: server/resources (user interaction), server/prompts (security considerations).
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcphost.config import Config
from mcphost.errors import CapabilityMissing, NotDone
from mcphost.host.catalog import Catalog
from mcphost.host.chat.turns import Attachment, PromptUsed
from mcphost.host.connections.servers import Servers
from mcphost.host.resources import ResourceService
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import CLOSE_ON_EXEC, NO_WAIT
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.models.content import (
    Content,
    EmbeddedResource,
    MediaContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnreadableContent,
)
from mcphost.protocol.models.prompts import GetPromptResult
from mcphost.protocol.models.resources import ReadResourceResult
from mcphost.protocol.models.sampling import Block, SamplingMessage, text_block
from mcphost.providers.base import IMAGES, estimate_tokens

if TYPE_CHECKING:  # few messages bring any
    from mcphost.host.skills.service import LoadedSkill, SkillService

PICTURE_BYTES: Final = 3_700_000
"""Of an image: what vendors take of one, before base64."""

PICTURE_TOKENS: Final = 1_500
"""About what an image costs, whatever is in it."""

_STARTS: Final = ((b"\x89PNG\r\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def of_resource(server: str, uri: str, title: str, read: ReadResourceResult, limit: int) -> Attachment:
    """Attach a resource's content, at most ``limit`` bytes of text. Raises NotDone if nothing can be attached."""
    blocks: list[TextContent | MediaContent] = []
    notes: list[str] = []
    for contents in read.contents:
        block = _block(contents)
        if isinstance(block, str):
            notes.append(block)
        else:
            blocks.append(block)
    return _attachment(server, uri, title, blocks, notes, limit)


def of_skill(server: str, loaded: LoadedSkill, limit: int) -> Attachment:
    """Attach a skill that was verified; it is never cut. Raises NotDone if it is longer than ``limit``, or empty."""
    skill, size = loaded.skill, len(loaded.body.encode("utf-8", "replace"))
    _check_size(server, skill.name, size, limit)
    if not loaded.body.strip():
        raise NotDone(f"the skill {show_line(skill.name, 64)} of {server} has no instructions besides its frontmatter")
    blocks = (text_block(loaded.body),)
    return Attachment(
        server, skill.uri, skill.name, blocks, size, estimate_tokens(loaded.body), skill=skill, window=loaded.window
    )


def _check_size(server: str, name: str, size: int, limit: int) -> None:
    if size > limit:
        raise NotDone(
            f"the skill {show_line(name, 64)} of {server} has {size_text(size)}, and a model gets at most "
            f"{size_text(limit)} of a text (chat.attachment_bytes); a part of a skill is never sent"
        )


def of_text(name: str, title: str, text: str, limit: int, *, outside: bool = True) -> Attachment:
    """A text that came from somewhere else, such as a pipe."""
    return _attachment("", name, title, [text_block(text)], [], limit, outside=outside)


def of_file(path: Path, limit: int) -> Attachment:
    """A file that was named. Waits for the disk. Raises NotDone where it is none of the user's to give."""
    path = _expanded(path)
    content, size = _content(path, max(limit, PICTURE_BYTES))
    mime_type = next((mime for start, mime in _STARTS if content.startswith(start)), "")
    if mime_type:
        if size > PICTURE_BYTES:
            raise NotDone(f"{path} is larger than the {size_text(PICTURE_BYTES)} that a picture may have")
        data = base64.b64encode(content).decode()
        picture = MediaContent(type="image", data=data, mime_type=mime_type)
        return Attachment("", str(path), path.name, (picture,), size, PICTURE_TOKENS, outside=False)
    text = content.decode("utf-8", "replace")
    if "\0" in text or text.count("\ufffd") > len(text) // 20:
        raise NotDone(f"{path} is neither text nor a picture that models take")
    note = _cut_note(limit, size) if size > limit else ""
    kept = content[:limit].decode("utf-8", "ignore") if size > limit else text
    return Attachment("", str(path), path.name, (text_block(kept),), size, estimate_tokens(kept), False, note)


def is_file(name: str) -> bool:
    """True if there is a file, or anything but a folder, of this name. Waits for the disk."""
    try:
        path = Path(name).expanduser()
        return path.exists() and not path.is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def of_prompt(server: str, prompt: str, arguments: dict[str, str], result: GetPromptResult) -> PromptUsed:
    """The messages of a prompt, each in the role its server gave it. Raises NotDone if it has none."""
    notes: list[str] = []
    messages: list[SamplingMessage] = []
    for message in result.messages:
        block = _said(message.content)
        if message.role not in ("user", "assistant"):
            notes.append(f"a message of the role {show_line(message.role, 40)!r} was left out")
        elif isinstance(block, str):
            notes.append(block)
        else:
            messages.append(SamplingMessage.create(message.role, block))
    if not messages:
        raise NotDone(f"the prompt {server}:{show_line(prompt, 80)} has nothing that a model can read")
    brings = any(isinstance(message.content, EmbeddedResource) for message in result.messages)
    return PromptUsed(server, prompt, arguments, tuple(messages), brings, "; ".join(notes))


def _said(content: Content) -> Block | str:
    """A block of a prompt as models take it, or the reason why a model cannot get it."""
    match content:
        case TextContent():
            return text_block(content.text)
        case MediaContent() if content.type == "image" and content.mime_type in IMAGES:
            return MediaContent(type="image", data=content.data, mime_type=content.mime_type)
        case EmbeddedResource():
            block = _block(content.resource)
            return (
                text_block(f"Resource {content.resource.uri}:\n{block.text}")
                if isinstance(block, TextContent)
                else block
            )
        case ResourceLink():
            return text_block(f"(link to the resource {content.label}: {content.uri})")
        case UnreadableContent():
            return f"a part was left out: {show_line(content.reason, 80)}"
    return f"{content.type} of the type {show_line(content.mime_type, 40)} was left out"


def _block(contents: ResourceContents | UnreadableContent) -> TextContent | MediaContent | str:
    if isinstance(contents, UnreadableContent):
        return f"a part was left out: {show_line(contents.reason, 80)}"
    if contents.text is not None:
        return text_block(contents.text)
    size = len(contents.blob or "") * 3 // 4
    if contents.mime_type in IMAGES and size <= PICTURE_BYTES:
        return MediaContent(type="image", data=contents.blob or "", mime_type=contents.mime_type or "")
    return f"{show_line(contents.mime_type or 'binary content', 40)}, {size_text(size)}, was left out"


def _attachment(
    server: str,
    name: str,
    title: str,
    blocks: Iterable[TextContent | MediaContent],
    notes: list[str],
    limit: int,
    *,
    outside: bool = True,
) -> Attachment:
    given = tuple(blocks)
    if not given:
        raise NotDone(f"{show_line(name, 200)}: {'; '.join(notes) or 'there is nothing in it'}")
    size = sum(map(_size, given))
    texts = sum(_size(block) for block in given if isinstance(block, TextContent))
    if texts > limit:
        given = tuple(_cut(given, limit))
        notes = [*notes, _cut_note(limit, texts)]
    tokens = sum(estimate_tokens(block.text) if isinstance(block, TextContent) else PICTURE_TOKENS for block in given)
    return Attachment(server, name, title, given, size, tokens, outside, "; ".join(notes))


def _cut_note(limit: int, size: int) -> str:
    return f"cut: the first {size_text(limit)} of {size_text(size)}"


def _size(block: TextContent | MediaContent) -> int:
    return len(block.text.encode("utf-8", "replace")) if isinstance(block, TextContent) else len(block.data) * 3 // 4


def _cut(blocks: Iterable[TextContent | MediaContent], limit: int) -> Iterator[TextContent | MediaContent]:
    room = limit
    for block in blocks:
        if isinstance(block, TextContent):
            kept = block.text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
            room -= len(kept.encode())
            if kept:
                yield text_block(kept)
        else:
            yield block


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise NotDone(f"{path}: {error}") from None


def _content(path: Path, limit: int) -> tuple[bytes, int]:
    """The first bytes of a file, one more than ``limit``, and its size."""
    try:
        if not path.resolve().is_relative_to(path.parent.resolve()):
            raise NotDone(f"{path} leads out of its folder; name the file itself")
        descriptor = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise NotDone(f"{path} is not a file")
            return file.read(limit + 1), found.st_size
    except (OSError, ValueError, RuntimeError) as error:
        raise NotDone(f"{path}: {getattr(error, 'strerror', None) or error}") from None


MOST_MENTIONS: Final = 50
"""In one message."""

MOST_CANDIDATES: Final = 200

SKILL: Final = "/skill"
"""The word before the name of a skill; the blank behind it tells it from a prompt of a server called ``skill``."""

_SKILL: Final = re.compile(r"/skill(?:[ \t]+(?P<named>\S+))?(?:\s+|\Z)")
_TYPED_SKILL: Final = re.compile(r"(?:/skill[ \t]+\S+\s+)*/skill[ \t]+(?P<typed>\S*)")
_PROMPT: Final = re.compile(r"/(?P<server>[^\s:/]+):(?P<prompt>\S+)(?:[ \t]+(?P<arguments>[^\n]*))?(?:\n|\Z)")
_MENTION: Final = re.compile(r"(?<!\S)@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<plain>[^\s\"@][^\s\"]*))")
_ENDING: Final = ".,;:!?)'"
"""Characters that end a sentence rather than a name."""


@dataclass(frozen=True, slots=True)
class PromptMention:
    """A prompt to be put into the conversation."""

    server: str
    prompt: str
    arguments: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why its arguments cannot be read."""


@dataclass(frozen=True, slots=True)
class SkillMention:
    """A skill that the model is to act on."""

    server: str
    skill: str
    """Its name, or the URI of its SKILL.md."""
    problem: str = ""
    """Why nothing can be meant by it."""


@dataclass(frozen=True, slots=True)
class AttachmentMention:
    """Something to be attached. ``server`` is empty for a file."""

    server: str
    name: str
    """A URI, or a path."""


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message taken apart. ``text`` is what goes to the model as the person's words; mentions stay in it."""

    text: str
    prompt: PromptMention | None = None
    mentions: tuple[AttachmentMention, ...] = ()
    skills: tuple[SkillMention, ...] = ()


@dataclass(frozen=True, slots=True)
class MentionCandidates:
    """Candidates to replace the text from ``start`` to ``end``."""

    start: int
    end: int
    texts: tuple[str, ...] = ()


def parse(text: str, servers: Collection[str]) -> ParsedMessage:
    """Take a message apart. What names no server of ``servers`` after a slash is just text, except after /skill."""
    skills = list[SkillMention]()
    while len(skills) < MOST_MENTIONS and (named := _SKILL.match(text)) is not None:
        skills.append(skill_mention(named["named"] or ""))
        text = text[named.end() :]
    return replace(_parse(text, servers), skills=tuple(skills))


def skill_mention(named: str) -> SkillMention:
    """Read ``SERVER:SKILL``."""
    server, _, skill = named.partition(":")
    problem = "" if server and skill else "write /skill server:name, with the name or the URI of a skill"
    return SkillMention(server, skill, problem)


def _parse(text: str, servers: Collection[str]) -> ParsedMessage:
    found = _PROMPT.match(text)
    if found is None or found["server"] not in servers:
        return ParsedMessage(text, mentions=_mentions(text, servers))
    rest = text[found.end() :].strip("\n")
    prompt = _prompt_mention(found["server"], found["prompt"], found["arguments"] or "")
    return ParsedMessage(rest, prompt, _mentions(rest, servers))


def candidates(
    text: str,
    cursor: int,
    *,
    prompts: Sequence[tuple[str, str]],
    resources: Sequence[tuple[str, str]],
    skills: Sequence[tuple[str, str]] = (),
) -> MentionCandidates:
    """Find candidates for the word before ``cursor``: names of prompts, skills or resources that fit it.

    Pairs are of server and name. Nothing where the cursor is in plain words.
    """
    before = text[:cursor]
    if (skill := _TYPED_SKILL.fullmatch(before)) is not None:
        start = skill.start("typed")
        return MentionCandidates(
            start, cursor, _fitting(skill["typed"], (f"{server}:{name}" for server, name in skills))
        )
    if re.fullmatch(r"/\S*", before):
        names = [f"/{server}:{name}" for server, name in prompts]
        return MentionCandidates(0, cursor, _fitting(before, [*names, *[SKILL] * bool(skills)]))
    mention = re.search(r"(?<!\S)@\S*\Z", before)
    if mention is None:
        return MentionCandidates(cursor, cursor)
    return MentionCandidates(mention.start(), cursor, _fitting(mention[0], (_written(*each) for each in resources)))


def _written(server: str, uri: str) -> str:
    name = f"{server}:{uri}"
    return f'@"{name}"' if re.search(r"\s", name) else f"@{name}"


def _fitting(typed: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those that begin like this first, then those that hold it somewhere."""
    part = typed.lower().removeprefix("/").removeprefix("@")
    known = [name for name in dict.fromkeys(names) if part in name.lower()]
    known.sort(key=lambda name: not name.lower().startswith(typed.lower()))
    return tuple(known[:MOST_CANDIDATES])


def _prompt_mention(server: str, prompt: str, written: str) -> PromptMention:
    try:
        words = shlex.split(written)
    except ValueError as error:
        return PromptMention(server, prompt, problem=f"its arguments cannot be read: {str(error).lower()}")
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            return PromptMention(server, prompt, problem=f"{word!r} is not an argument; write name=value")
        arguments[key] = value
    return PromptMention(server, prompt, arguments)


def _mentions(text: str, servers: Collection[str]) -> tuple[AttachmentMention, ...]:
    found = (match["quoted"] or match["plain"].rstrip(_ENDING) for match in _MENTION.finditer(text))
    named = dict.fromkeys(_mention(name, servers) for name in found if name)
    return tuple(named)[:MOST_MENTIONS]


def _mention(name: str, servers: Collection[str]) -> AttachmentMention:
    server, colon, uri = name.partition(":")
    return AttachmentMention(server, uri) if colon and uri and server in servers else AttachmentMention("", name)


@dataclass(frozen=True, slots=True)
class ComposedMessage:
    """A message with all that it names, before it is sent: the arguments of `Chat.send`."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    prompts: tuple[PromptUsed, ...] = ()


class AttachmentService:
    """Reads the files, resources and prompts that a message brings along."""

    def __init__(
        self,
        config: Callable[[], Config],
        catalog: Catalog,
        servers: Servers,
        resources: ResourceService,
        open_skills: Callable[[], SkillService],
    ) -> None:
        self._config, self._catalog, self._servers, self._resources = config, catalog, servers, resources
        self._open_skills = open_skills

    async def compose(self, text: str, skills: Iterable[SkillMention] = ()) -> ComposedMessage:
        """Read the skills, the prompt and the attachments that a message names, and send nothing.

        The user is asked about skills. A word after @ that names neither a resource nor a file stays text. Raises as
        reading does, or Declined.
        """
        parsed = parse(text, self._servers)
        attachments = [await self.skill(each) for each in (*skills, *parsed.skills)]
        prompts = []
        if (named := parsed.prompt) is not None:
            if named.problem:
                raise NotDone(f"/{named.server}:{named.prompt}: {named.problem}")
            prompts.append(await self.prompt(named.server, named.prompt, named.arguments))
        for mention in parsed.mentions:
            if mention.server:
                attachments.append(await self.resource(mention.server, mention.name))
            elif await asyncio.to_thread(is_file, mention.name):
                attachments.append(await self.file(Path(mention.name)))
        return ComposedMessage(parsed.text, tuple(attachments), tuple(prompts))

    async def resource(self, server: str, uri: str) -> Attachment:
        """Read a resource for a model. Raises NotDone if no part of it can be sent, or as reading does."""
        known = self._catalog.resource(server, uri)
        read = await self._resources.read(server, uri)
        return of_resource(server, uri, known.label if known else uri, read, self._config().chat.attachment_bytes)

    async def skill(self, named: SkillMention) -> Attachment:
        """Load a skill for a model, which the user is asked about. Raises NotDone, UnknownName, or as loading does."""
        if named.problem:
            raise NotDone(named.problem)
        skills, limit = self._open_skills(), self._config().chat.attachment_bytes
        try:
            skill = await skills.find(named.server, named.skill)
        except CapabilityMissing as error:
            raise NotDone(f"{named.server} offers no skills: {error}") from None
        if (main := skill.file(skill.uri)) is not None:  # before anybody is asked
            _check_size(named.server, skill.name, main.size, limit)
        return of_skill(named.server, await skills.load(named.server, skill.uri, origin="you"), limit)

    async def file(self, path: Path) -> Attachment:
        """Read a file for a model. Raises NotDone."""
        return await asyncio.to_thread(of_file, path, self._config().chat.attachment_bytes)

    def text(self, name: str, text: str) -> Attachment:
        """Attach a text, such as that of a pipe. Raises NotDone if it is empty."""
        return of_text(name, name, text, self._config().chat.attachment_bytes)

    async def prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> PromptUsed:
        """Get the messages of a prompt. Raises NotDone, or as the request does."""
        given = dict(arguments)
        return of_prompt(server, prompt, given, await self._resources.get_prompt(server, prompt, given))

    def candidates(self, text: str, cursor: int) -> MentionCandidates:
        """Completions of the word at ``cursor``: prompts and skills after a slash, resources after an @."""
        prompts = [(each.server, each.prompt.name) for each in self._catalog.prompts()]
        resources = [(each.server, each.resource.uri) for each in self._catalog.resources()]
        return candidates(text, cursor, prompts=prompts, resources=resources, skills=self._skill_names())

    def _skill_names(self) -> list[tuple[str, str]]:
        """The skills by server and name, or by URI where that is needed to tell them apart."""
        listed = [(each.server, each.skill.name, each.skill.uri) for each in self._catalog.skills()]
        times = Counter((server, name) for server, name, _ in listed)
        words = ((server, name if name and times[server, name] == 1 else uri) for server, name, uri in listed)
        return [(server, word) for server, word in words if word.isprintable() and " " not in word]
