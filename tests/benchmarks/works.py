"""All works, in the order of the table, and how one is run so that its failure is a row and not the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tests.benchmarks import (
    agent_works,
    capture_works,
    chat_works,
    era_works,
    hidden_works,
    history_works,
    hold_works,
    host_works,
    memory_works,
    process_works,
    screen_works,
    serve_works,
    sharing_works,
    web_works,
    wire_works,
)
from tests.benchmarks.measure import Row
from tests.benchmarks.sizes import Sizes

Work = Callable[[Sizes, int], Awaitable[list[Row]]]

WORKS: Final[Mapping[str, Work]] = {
    "sequential": wire_works.sequential_calls,
    "parallel": wire_works.parallel_calls,
    "logs": wire_works.log_messages,
    "big": wire_works.one_big_result,
    "frame": process_works.first_frame,
    "call": process_works.one_call,
    "servers": host_works.many_servers,
    "audit": host_works.audited_calls,
    "large": hold_works.large_answers,
    "references": hold_works.many_references,
    "notifications": hold_works.many_notifications,
    "toolbox": hold_works.many_tools,
    "capture": capture_works.captured_calls,
    "web": web_works.web_calls,
    "web-parallel": web_works.web_calls_in_flight,
    "web-logs": web_works.web_events,
    "modern": era_works.modern_calls,
    "modern-web": era_works.modern_web_calls,
    "official": era_works.official_client,
    "opening": era_works.openings,
    "rounds": era_works.rounds_of_input,
    "listening": era_works.listening,
    "memory": memory_works.idle_servers,
    "flood": screen_works.keys_in_a_flood,
    "filter": screen_works.filtering,
    "palette": screen_works.finding,
    "typing": screen_works.typing,
    "sorting": screen_works.sorting,
    "chat": chat_works.words_of_a_model,
    "hidden": hidden_works.hidden_panes,
    "history": history_works.many_calls,
    "between": agent_works.between,
    "tapped": agent_works.tapped_flood,
    "tap-start": agent_works.program_starts,
    "taps": agent_works.idle_taps,
    "served": serve_works.served_calls,
    "shared": sharing_works.shared_servers,
}


async def carry_out(name: str, sizes: Sizes, runs: int) -> list[Row]:
    """The rows of one work; where it cannot be done, one row that says why and is within nothing."""
    try:
        return await WORKS[name](sizes, runs)
    except Exception as error:  # the other works are still worth measuring
        return [Row(name, note=f"not measured: {type(error).__name__}: {error}")]
