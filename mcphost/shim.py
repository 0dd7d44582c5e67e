"""Runs a server's program between an agent and the program's streams, and copies the bytes to an observer.

It loads the standard library alone, and little of that before the program runs. Threads pump the bytes, so that one
direction never waits for the other, and none of them ever waits for the observer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

LINE: Final = 64 << 20
"""Bytes of the longest line that a filter receives whole."""

ROOM: Final = 1 << 20
"""Bytes that may wait for a reader before the pump that feeds it pauses."""

BACKLOG: Final = 8 << 20
"""Bytes of copies that may wait for the observer."""

DRAIN: Final = 2.0
"""Seconds that the observer gets at the end."""


class StartFailure(Exception):
    """The program could not be started; ``code`` is the exit code that a shell gives then."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


class Outlet:
    """The bytes that wait for one reader, which a thread of its own writes in order."""

    def put(self, data: bytes) -> None:
        """Queue bytes; thread-safe, and never waits.

        The pump that feeds this outlet pauses while `ROOM` bytes wait; the other pump pauses while as many wait that
        were put by other threads.
        """


class LineFilter:
    """Decides what a shim passes on; this one passes on all.

    Each method runs in the pump of its direction, one call at a time. What it puts into an outlet is written in that
    order. A line has its newline, except for the rest before the end of a stream. ``whole`` is False for each piece of
    a line longer than `LINE`; the last piece has the newline.
    """

    def __init__(self, shim: Shim) -> None:
        self.shim = shim

    def from_agent(self, line: bytes, whole: bool) -> None:
        self.shim.to_server.put(line)

    def from_server(self, line: bytes, whole: bool) -> None:
        self.shim.to_agent.put(line)

    def agent_closed(self) -> None:
        """The agent's stream ended; the server's input is closed once all that waits for it is written."""

    def server_closed(self) -> None:
        """The server's stream ended; the agent's is closed once all that waits for it is written."""


class Shim:
    """One run of a server's program: `start` it, then `run` the pumps until it ends."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self.child = 0
        """The process id of the program, and the number of its process group; 0 before `start`."""
        self.to_server, self.to_agent = Outlet(), Outlet()
        self.copy: Callable[[str, bytes], None] = lambda source, data: None
        """Called with ``agent``, ``server`` or ``stderr`` and each piece of bytes as it was read. Must not wait."""

    def start(self) -> None:
        """Start the program in a process group of its own. Raises StartFailure."""

    def run(self, lines: LineFilter | None = None) -> int:
        """Pump until the program has ended, and return the exit code: its own, or 128 and its signal.

        Without a filter the bytes pass as they are read.
        """
        return 0


class Observer:
    """Sends copies to the running screen, else to a spool file. Only its own threads wait.

    ``hello`` makes the first message, ``path`` the socket's path; both are called in the observer's thread.
    """

    def __init__(self, hello: Callable[[], bytes], path: Callable[[], str]) -> None:
        self.received: Callable[[bytes], None] = lambda line: None
        """Called in the observer's reading thread with each line of the screen after its welcome."""
        self.lost: Callable[[], None] = lambda: None
        """Called once each time the screen is gone."""

    def take(self, source: str, data: bytes) -> None:
        """Queue a copy; beyond `BACKLOG` bytes it is counted as dropped. Never waits."""

    def say(self, line: bytes) -> bool:
        """Queue a message of the link, in order with the copies; False where no screen is connected."""
        return False

    def connect(self) -> bool:
        """Look for a screen now, and wait shortly for its welcome; return True if one is connected."""
        return False

    def close(self) -> None:
        """Write the queue, for at most `DRAIN` seconds."""
