"""The history of calls across runs."""

from __future__ import annotations

from pathlib import Path

from mcphost.host.history.past_call import PastCallQuery
from mcphost.host.tool_calls.call import CallState
from tests.host.conftest import NO, YES, HostOf, echo


async def test_calls_of_earlier_runs_are_found(host: HostOf, tmp_path: Path) -> None:
    parts = {"history_path": tmp_path / "history.sqlite"}
    async with host(a=echo(), answers=(YES, NO), dependencies=parts) as first:
        await first.run("a", "echo", {"text": "one"})
        await first.run("a", "echo", {"text": "two"})
        assert [(each.name, each.state) for each in await first.history.last_calls("a", "echo")] == [
            ("call 2", CallState.DECLINED), ("call 1", CallState.DONE),
        ]  # fmt: skip
        assert first.alarms == []
    async with host(a=echo(), dependencies=parts) as second:
        declined, done = await second.history.find(PastCallQuery())
        assert (declined.arguments, declined.state, declined.sent) == ({"text": "two"}, CallState.DECLINED, False)
        assert (done.arguments, done.state, done.has_result) == ({"text": "one"}, CallState.DONE, True)
        assert done.identity == second.config.servers["a"].identity
        result = await second.history.result(done)
        assert result is not None
        assert result["content"] == [{"type": "text", "text": "one"}]
        assert await second.history.last_used() == [("a", "echo")]
        assert await second.history.last_calls("a", "echo", 1) == [declined]
        assert await second.history.find(PastCallQuery(words=["one"])) == [done]
