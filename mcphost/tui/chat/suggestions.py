"""Suggestions for a message: prompts and their arguments, skills, resources, files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from mcphost.errors import UnknownName
from mcphost.host.chat.attachments import SKILL
from mcphost.host.host import Host
from mcphost.protocol.display import size_text
from mcphost.protocol.models.prompts import Prompt, PromptArgument, PromptRef
from mcphost.tui.chat.input import Suggestion

MOST: Final = 200
LISTED: Final = 5_000
"""Names that are read of a folder."""

_ARGUMENTS: Final = re.compile(r"/(?P<server>[^\s:/]+):(?P<prompt>\S+)[ \t]+(?P<rest>[^\n]*)")
_LAST: Final = re.compile(r"(?:(?P<name>[^\s=]+)=(?P<value>\"[^\"]*|'[^']*|\S*)|(?P<part>[^\s=]*))\Z")
_FILE: Final = re.compile(r"(?<!\S)@(?P<path>[^\s\"]*)\Z")


async def suggestions(host: Host, text: str, cursor: int) -> Sequence[Suggestion] | None:
    """Return the suggestions at the cursor; None if a later request will bring them."""
    before = text[:cursor]
    if (arguments := _ARGUMENTS.fullmatch(before)) is not None:
        return await _of_arguments(host, arguments, cursor)
    found = host.chats.attachments.candidates(text, cursor)
    known = [Suggestion(found.start, found.end, each, _about(host, each)) for each in found.texts]
    if (mention := _FILE.search(before)) is not None:
        known += await asyncio.to_thread(lambda: list(_files(mention["path"], mention.start(), cursor)))
    return known[:MOST]


def _about(host: Host, candidate: str) -> str:
    """A description of a suggestion, in its server's words."""
    if candidate == SKILL:
        return "has the model act on a server's skill"
    if not candidate.startswith(("/", "@")):
        return _about_skill(host, *candidate.split(":", 1))
    server, _, name = candidate[1:].strip('"').partition(":")
    if candidate.startswith("@"):
        resource = host.catalog.resource(server, name)
        size = "" if resource is None or resource.size is None else size_text(min(resource.size, 10**15))
        return "" if resource is None else " · ".join(filter(None, [resource.label, resource.mime_type, size]))
    prompt = _prompt(host, server, name)
    if prompt is None:
        return ""
    names = " ".join(f"{each.name}={'' if each.required else '?'}" for each in prompt.arguments or ())
    return " · ".join(filter(None, [names, (prompt.description or prompt.label).strip().split("\n", 1)[0]]))


def _about_skill(host: Host, server: str, name: str) -> str:
    known = (each.skill for each in host.catalog.skills(server) if name in (each.skill.name, each.skill.uri))
    return next((each.description.strip().split("\n", 1)[0] for each in known), "")


def _prompt(host: Host, server: str, name: str) -> Prompt | None:
    try:
        return host.catalog.prompt(server, name)
    except UnknownName:
        return None


async def _of_arguments(host: Host, typed: re.Match[str], cursor: int) -> Sequence[Suggestion] | None:
    """Suggest arguments that are missing, or the server's completions for the value at the cursor."""
    prompt, last = _prompt(host, typed["server"], typed["prompt"]), _LAST.search(typed["rest"])
    if prompt is None or last is None:
        return ()
    arguments = dict(re.findall(r"([^\s=]+)=(\"[^\"]*\"|'[^']*'|\S*)", typed["rest"]))
    if last["name"] is None:
        start = cursor - len(last["part"])
        missing = [each for each in prompt.arguments or () if each.name not in arguments]
        fitting = [each for each in missing if each.name.startswith(last["part"])]
        return [Suggestion(start, cursor, f"{each.name}=", _meaning(each), "") for each in fitting]
    if not host.completion.offered(typed["server"]) or last["name"] not in {
        each.name for each in prompt.arguments or ()
    }:
        return ()
    value, start = last["value"].strip("\"'"), cursor - len(last["value"])
    others = {name: text.strip("\"'") for name, text in arguments.items() if name != last["name"]}
    answer = await host.completion.suggest(typed["server"], PromptRef(prompt.name), last["name"], value, others)
    return None if answer is None else [Suggestion(start, cursor, _quoted(each)) for each in answer.usable[:MOST]]


def _meaning(argument: PromptArgument) -> str:
    return " · ".join(filter(None, ["" if argument.required else "optional", argument.description]))


def _quoted(value: str) -> str:
    if re.fullmatch(r"[\w.,:/@%+-]+", value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _files(typed: str, start: int, end: int) -> Iterator[Suggestion]:
    """Suggest the files and folders whose names start with ``typed``. Blocks on the disk."""
    folder, name = os.path.split(typed)
    if not typed or ":" in typed:
        return
    try:
        with os.scandir(folder or ".") as entries:
            for entry in sorted(islice(entries, LISTED), key=lambda each: each.name):
                if _matches(entry.name, name):
                    yield _file(os.path.join(folder, entry.name), entry.is_dir(), start, end)
    except OSError:
        return


def _matches(name: str, typed: str) -> bool:
    hidden = name.startswith(".") and not typed
    return name.startswith(typed) and name.isprintable() and not hidden


def _file(path: str, is_folder: bool, start: int, end: int) -> Suggestion:
    text = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
    if is_folder:
        return Suggestion(start, end, text + os.sep, "folder", "")
    return Suggestion(start, end, text, "file")
