"""The words of an empty list."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.host.connections.connection import ServerState
from mcphost.tui.catalog.list import why_none


class InState:
    def __init__(self, state: ServerState) -> None:
        self.state = state


READY, STARTING, FAILED = ServerState.READY, ServerState.STARTING, ServerState.FAILED


@pytest.mark.parametrize(
    ("states", "chosen", "words"),
    [
        ([STARTING] * 7, None, "Starting 7 servers. Tools appear as soon as a server is ready."),
        ([STARTING], None, "Starting 1 server. Tools appear as soon as a server is ready."),
        ([STARTING, READY, FAILED], None, "Starting 1 server. Tools appear as soon as a server is ready."),
        ([READY, FAILED], None, ""),
        ([], None, ""),
        (
            [FAILED],
            None,
            "No tools: no server is ready.\ns goes to the servers, enter there shows why; f3 opens the logs.",
        ),
        ([READY], 0, "“s0” has no tools."),
        ([STARTING], 0, "“s0” is starting. Its tools appear when it is ready."),
        ([READY, FAILED], 1, "“s1” has no tools: it failed.\nc shows why. s and home: all servers."),
        *(
            ([state], 0, f"“s0” has no tools: {why}.\nc shows why. s and home: all servers.")
            for state, why in {
                ServerState.DISABLED: "it is disabled",
                ServerState.STOPPED: "it is stopped",
                ServerState.RECONNECTING: "it is not connected",
                ServerState.NEEDS_SIGN_IN: "it needs a sign-in",
            }.items()
        ),
    ],
)
def test_an_empty_list_says_why_it_is_empty(states: list[ServerState], chosen: int | None, words: str) -> None:
    servers: dict[str, Any] = {f"s{number}": InState(state) for number, state in enumerate(states)}
    assert why_none("tools", servers, None if chosen is None else f"s{chosen}") == words
