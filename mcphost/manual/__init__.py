"""The user's manual: one Markdown page a topic, for ``mcphost help`` and the help on screen.

A page begins with a title and a paragraph; the paragraph's first sentence describes the topic in lists of topics.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TOPICS: Final = (
    "tour",
    "servers",
    "consent",
    "saved-calls",
    "test-your-server",
    "review-a-server",
    "agents",
    "serve",
    "chat",
    "skills",
    "sign-in",
    "command-line",
    "configuration",
    "security",
    "traffic",
    "library",
)
"""In the order in which they are read."""

_FOLDER: Final = Path(__file__).parent
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([a-z-]+)\.md(?:#[\w-]*)?\)")
"""To another page, as the files have it for readers of the repository."""


def topics() -> dict[str, str]:
    """Return the topics in reading order, each with a sentence about it."""
    return {name: _about(name) for name in TOPICS}


def page(name: str) -> str:
    """Return the page of a topic as Markdown; links to other pages name the command that shows them.

    Raises FileNotFoundError.
    """
    text = _LINK.sub(r"\1 (`mcphost help \2`)", _path(name).read_text("utf-8"))
    if name == "configuration":
        from mcphost.manual.configuration import configuration_reference  # late: it needs pydantic

        text = f"{text.rstrip()}\n\n{configuration_reference()}"
    return text


def _path(name: str) -> Path:
    return _FOLDER / f"{name}.md"


def _about(name: str) -> str:
    paragraph = _path(name).read_text("utf-8").split("\n\n", 2)[1]
    return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")
