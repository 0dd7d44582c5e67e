"""Any interleaving of messages keeps the order of each direction, and answers each request once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.serving.gate import GateOptions
from mcphost.serving.ports import GateDecision
from tests.serving.gate_rig import ECHO, call, notification, opened, request, result, text_result

IDS = st.sampled_from([1, 2, "1", "a", -1])
CALLED = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), IDS, CALLED, st.booleans()),
        st.tuples(st.just("ping"), IDS),
        st.tuples(st.just("batch"), IDS, IDS, CALLED),
        st.tuples(st.just("cancel"), IDS),
        st.tuples(st.sampled_from(["tell server", "tell agent", "change", "change tool", "hostile line", "progress"])),
        st.tuples(st.just("decide"), st.sampled_from(["yes", "no", "edit", "remembered"]), st.integers(0, 3)),
        st.tuples(st.just("answer"), st.integers(0, 3)),
        st.tuples(st.just("forge"), IDS),
        st.tuples(st.just("wait"), st.sampled_from([1, 12, 40])),
    ),
    max_size=40,
)


class Story:
    """An agent that keeps the rules but for ids used twice, and a server that breaks them."""

    def __init__(self, *, lists: bool) -> None:
        self.rig = opened(GateOptions(answer_within=30), tools=[ECHO] if lists else None)
        self.number = 0
        self.version = 0
        self.flows: list[Any] = []
        """The messages of the agent that do not wait, as the server is to get them."""
        self.told: list[int] = []
        self.owed: Counter[Any] = Counter()
        """Answers that the agent must still get, by id; none of a cancelled request."""
        self.cancelled: set[Any] = set()
        self.allowed: Counter[int] = Counter()
        self.server_flows: list[Any] = []
        self.server_asked: list[Any] = []
        self.agent_told: list[int] = []

    def play(self, steps: list[tuple[Any, ...]]) -> None:
        for name, *values in steps:
            getattr(self, name.replace(" ", "_"))(*values)
            self.take()
        self.finish()

    # The agent.

    def call(self, request_id: Any, called: int, has_token: bool) -> None:
        if request_id not in self.cancelled:
            self.owed[request_id] = 1
            self.rig.agent(call(request_id, meta={"progressToken": request_id} if has_token else None, n=called))

    def ping(self, request_id: Any) -> None:
        if request_id not in self.cancelled:
            self.flows += [] if self.owed[request_id] else [request_id]
            self.owed[request_id] = 1
            self.rig.agent(request(request_id, "ping"))

    def batch(self, first: Any, second: Any, called: int) -> None:
        if not {first, second} & self.cancelled and first != second:
            self.number += 1
            self.flows += [f"n{self.number}"] if self.owed[first] else [first, f"n{self.number}"]
            self.owed[first] = self.owed[second] = 1
            told = notification("notifications/x", n=f"n{self.number}")
            self.rig.agent([request(first, "ping"), call(second, n=called), told])

    def cancel(self, request_id: Any) -> None:
        if self.owed[request_id]:
            self.owed[request_id] = 0
            self.cancelled.add(request_id)
        self.rig.agent(notification("notifications/cancelled", requestId=request_id))

    def tell_server(self) -> None:
        self.number += 1
        self.flows.append(f"n{self.number}")
        self.rig.agent(notification("notifications/x", n=f"n{self.number}"))

    def hostile_line(self) -> None:
        self.rig.agent(b'{"jsonrpc":"2.0","method":"x","method":"tools/call","params":{"name":"echo"}}\n')

    # The server.

    def answer(self, place: int) -> None:
        if self.server_asked:
            asked = self.server_asked.pop(place % len(self.server_asked))
            tools = [{**ECHO, "description": str(self.version)}]
            listing = asked["method"] == "tools/list"
            self.rig.server(result(asked["id"], tools=tools) if listing else text_result(asked["id"]))

    def forge(self, request_id: Any) -> None:
        self.rig.server(text_result(request_id))

    def tell_agent(self) -> None:
        self.number += 1
        self.told.append(self.number)
        self.rig.server(notification("notifications/y", n=self.number))

    def change(self) -> None:
        self.rig.server(notification("notifications/tools/list_changed"))

    def change_tool(self) -> None:
        self.version += 1
        self.change()

    def progress(self) -> None:
        self.rig.server(notification("notifications/progress", progressToken=1, progress=self.number))

    # The user, and time.

    def decide(self, decision: str, place: int) -> None:
        if waiting := self.rig.gate.waiting:
            asked = waiting[place % len(waiting)]
            if decision != "no":
                self.allowed[asked.arguments["n"]] += 1
            edited = {**asked.arguments, "edited": True} if decision == "edit" else None
            within = 5.0 if decision == "remembered" else None
            self.rig.decide(GateDecision(decision != "no", edited, listed_within=within), asked.number)

    def wait(self, seconds: int) -> None:
        self.rig.pass_time(seconds)

    # The facts.

    def take(self) -> None:
        """Check what came on either side since the last step."""
        for message in messages(self.rig.server_got):
            method, params = message["method"], message.get("params", {})
            if method == "tools/call":
                self.allowed[params["arguments"]["n"]] -= 1
            elif method in ("ping", "notifications/x"):
                self.server_flows.append(message["id"] if method == "ping" else params["n"])
            if "id" in message:
                self.server_asked.append(message)
        for message in messages(self.rig.agent_got):
            if message.get("method") == "notifications/y":
                self.agent_told.append(message["params"]["n"])
            elif "method" not in message and message["id"] is not None:
                assert self.owed[message["id"]] or message["id"] in self.cancelled
                self.owed[message["id"]] = 0
        self.rig.clear()
        assert min(self.allowed.values(), default=0) >= 0

    def finish(self) -> None:
        for _ in range(200):
            if not (self.rig.gate.waiting or self.server_asked):
                break
            self.decide("no", 0)
            self.answer(0)
            self.take()
        self.wait(31)
        self.take()
        assert (self.server_flows, self.agent_told) == (self.flows, self.told)
        assert not any(self.owed.values())


def messages(lines: list[Any]) -> list[Any]:
    return [each for one in lines for each in (one if isinstance(one, list) else [one])]


@settings(max_examples=150)
@given(STEPS, st.booleans())
def test_any_interleaving_keeps_order_and_answers_each_request_once(steps: list[tuple[Any, ...]], lists: bool) -> None:
    Story(lists=lists).play(steps)
