"""The banner of the demo: what it is and, where no configuration was found, how to add a server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from textual.content import Content
from textual.widget import Widget

from mcphost.config import with_tilde
from mcphost.protocol.display import show_line

EXAMPLE: Final = '[servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n'
"""A server's entry, to be copied."""

_ONE_LINE: Final = 'servers.git = { command = "uvx", args = ["mcp-server-git"] }'


class StartBanner(Widget):
    """``missing`` is where a configuration file would be; None: the user asked for the demo."""

    DEFAULT_CSS = """
    StartBanner { padding: 0 1; background: $panel; }
    """

    def __init__(self, missing: Path | None) -> None:
        super().__init__()
        self._path = "" if missing is None else show_line(str(with_tilde(missing)), 4096)
        self._elsewhere = ""
        self.styles.height = 2 if self.offers_servers else 1

    @property
    def offers_servers(self) -> bool:
        """True where it says how to add a server, which a demo that was asked for does not take."""
        return bool(self._path)

    def show_elsewhere(self, words: str) -> None:
        """Say which other programs have servers: ``Claude Code has 4 servers, VS Code 2``."""
        self._elsewhere = words
        self.refresh()

    def render(self) -> Content:
        width = self.size.width
        if not self.offers_servers:
            return _longest(_demo(), width)
        return Content("\n").join([_longest(self._about(), width), _longest(_how_to(self._elsewhere), width)])

    def _about(self) -> Iterable[Content]:
        for words in (
            f"no configuration found at {self._path}. Everything here is safe to try.",
            f"no configuration found at {self._path}",
            f"no {self._path}",
        ):
            yield Content.assemble(("Demo", "bold $text-accent"), f": {words} · ", ("x", _KEY), " closes")


_KEY: Final = "bold $text-accent"


def _demo() -> Iterable[Content]:
    for words in (
        "a server that is built into mcphost, and a scripted model. Everything here is safe to try.",
        "a built-in server and a scripted model, safe to try.",
        "all of it is safe to try.",
    ):
        yield Content.assemble(("Demo", _KEY), f": {words} · ", ("x", _KEY), " closes")


def _how_to(elsewhere: str) -> Iterable[Content]:
    adds = Content.assemble(("a", _KEY), " adds a server")
    copies = Content.assemble(("y", _KEY), " copies an example")
    if elsewhere:
        found = Content.assemble((elsewhere, "$text-primary"), ": ", ("i", _KEY), " looks at them")
        yield Content(" · ").join([found, adds, copies, Content("more: mcphost --help")])
        yield Content(" · ").join([found, adds, copies])
        yield Content(" · ").join([found, adds])
        yield Content.assemble(found, " · ", ("a", _KEY), " adds one")
        yield found
    else:
        looks = Content.assemble(("i", _KEY), " looks for those of other programs")
        example = Content.assemble(copies, ": ", (_ONE_LINE, "$text-primary"))
        yield Content(" · ").join([adds, looks, example, Content("more: mcphost --help")])
        yield Content(" · ").join([adds, looks, copies])
        yield Content(" · ").join([adds, looks])
    yield Content.assemble(("i", _KEY), " looks at servers of other programs · ", adds)
    yield adds


def _longest(wordings: Iterable[Content], width: int) -> Content:
    """The first that fits into ``width`` cells; else the last, cut."""
    *_, shortest = listed = list(wordings)
    return next((each for each in listed if each.cell_length <= width), shortest.truncate(width, ellipsis=True))
