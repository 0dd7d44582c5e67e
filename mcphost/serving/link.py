"""The messages between a tap or gate and the running screen: one JSON object a line over a Unix socket.

``mcphost serve`` says hello in the same way; the lines after its welcome are those of MCP.
After the welcome of ``mcphost serve``, the lines are those of MCP.
Any program of the same user may connect, so that every line is read as hostile. ``copy`` is followed by raw bytes.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from mcphost.errors import InvalidLink
from mcphost.protocol.limits import JSON_DEPTH, MESSAGE_ITEMS
from mcphost.protocol.wire.strict_json import Refused, parse, parse_in_steps

PROTOCOL: Final = 1
"""The version of the link, in ``hello``."""

LINE_BYTES: Final = 1 << 20
"""Bytes of a line: far more than a question that a person reads."""

COPY_BYTES: Final = 4 << 20
"""Bytes of a copy: the traffic book keeps no more of one message."""

WORDS: Final = 4096
"""Words of a command line: as many as a person could never read."""

SECRETS: Final = 20
"""Values to be masked: more than any server needs."""

SECRET: Final = 8000
"""Characters of such a value."""

_RESERVED: Final = {"given": "as", "source": "from"}
"""Members whose names are words of Python."""

Name = Annotated[str, Field(max_length=200)]
WORDS_CHARACTERS: Final = 4000
"""Characters of a text for a person or a model."""

Text = Annotated[str, Field(max_length=WORDS_CHARACTERS)]
Number = Annotated[int, Field(ge=0, le=1 << 53)]
Seconds = Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)]


class LinkMessage(BaseModel):
    """Unknown members are ignored: a gate may be newer than the screen."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        populate_by_name=True,
        alias_generator=lambda name: _RESERVED.get(name, name),
        defer_build=True,
    )

    def line(self) -> bytes:
        """The message with its newline."""
        try:
            return to_json(self, by_alias=True) + b"\n"
        except ValueError:  # lone surrogates
            return json.dumps(self.model_dump(by_alias=True)).encode() + b"\n"


# The side of a tap or gate.


class Hello(LinkMessage):
    """The first message; `Welcome` or `HelloRefused` answers it."""

    type: Literal["hello"] = "hello"
    mcphost: int = PROTOCOL
    role: Literal["tap", "gate", "serve", "http", "list", "standby"]
    """``serve`` speaks MCP from then on, as an agent; ``http`` wants an address for agents while it is connected.

    ``list`` asks for `AgentList`; ``standby`` is another screen, which waits for the end of this one.
    """
    name: Name = ""
    """The server's name for rules, approvals and audit."""
    given: Name | None = None
    """The agent's name by ``--as``."""
    pid: Number = 0
    ppid: Number = 0
    command: Annotated[list[str], Field(max_length=WORDS)] | None = None
    url: Annotated[str, Field(max_length=8000)] | None = None
    cwd: Text = ""
    names: Annotated[list[Name], Field(max_length=WORDS)] = []
    """Names of the environment's variables, or of the headers that ``url`` is sent."""
    secrets: Annotated[list[Annotated[str, Field(max_length=SECRET)]], Field(max_length=SECRETS, repr=False)] = []
    """Values of those headers, which the screen masks where they occur."""
    started: Seconds = 0.0
    """Unix time."""
    child: Number | None = None
    """The process id of the server."""
    questions: Literal["agent", "here", "both"] = "agent"
    """The side that answers the server's questions."""
    version: Name = ""
    servers: Annotated[list[Name], Field(max_length=WORDS)] = []
    """Names of the servers that are served; none: all."""
    profile: Name | None = None
    approve: bool = False
    """True to offer the tool that answers an agent's own requests for permission."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The port of the address; 0: any."""


class MessageCopy(LinkMessage):
    """One line of traffic follows as ``size`` raw bytes, without its newline.

    The last one of a stream may be empty, to say what was left out before the end.
    """

    type: Literal["copy"] = "copy"
    source: Literal["agent", "server", "stderr", "gate"]
    """``gate``: mcphost sent it in the place of one of the two."""
    to_server: bool = False
    """The side that a gate sent it to."""
    time: Seconds
    size: Annotated[int, Field(ge=0, le=COPY_BYTES)]
    whole: Number = 0
    """Bytes of the line, of which perhaps only the start follows."""
    dropped: Number = 0
    """Copies since the last one that were left out."""


class AgentNamed(LinkMessage):
    """The agent has said who it is."""

    type: Literal["client"] = "client"
    name: Name = ""
    version: Name = ""
    era: Literal["legacy", "modern"] = "legacy"
    revision: Name = ""


class CallAsked(LinkMessage):
    """A call waits for `CallDecided`."""

    type: Literal["ask"] = "ask"
    call: Number
    request: str | int | float
    """The id of the agent's request."""
    definition: dict[str, Any] | None
    """The tool as the server listed it; None: it did not."""
    tool: Annotated[str, Field(max_length=4000)] = ""
    """The tool's name where there is no definition."""
    arguments: dict[str, Any]
    answer_within: Seconds | None = None
    """Seconds in which the agent is answered."""
    progress: bool = False
    """True if the agent hears of the wait."""


class CallWithdrawn(LinkMessage):
    """The call needs no decision any more."""

    type: Literal["withdraw"] = "withdraw"
    call: Number
    reason: Text = ""


class CallOverdue(LinkMessage):
    """The agent was answered "not decided yet"; a later yes is a grant for the same call once."""

    type: Literal["overdue"] = "overdue"
    call: Number


class CallDoubted(LinkMessage):
    """The agent may have given up without a word."""

    type: Literal["doubt"] = "doubt"
    call: Number


class CallForwarded(LinkMessage):
    """The call went to the server."""

    type: Literal["sent"] = "sent"
    call: Number


class CallEnded(LinkMessage):
    """The call that went to the server has its end."""

    type: Literal["finished"] = "finished"
    call: Number
    state: Literal["done", "failed", "cancelled", "lost"]
    seconds: Seconds = 0.0
    """From the server's request to its answer."""


class InboxRequest(LinkMessage):
    """A question of the server, which `InboxReply` answers."""

    type: Literal["request"] = "request"
    number: Number
    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: dict[str, Any] = {}
    call: Number | None = None
    """The call that it belongs to, if that is known."""


class InboxRequestGone(LinkMessage):
    """The server's question needs no answer any more."""

    type: Literal["request_gone"] = "request_gone"
    number: Number


# The side of the screen.


class Welcome(LinkMessage):
    type: Literal["welcome"] = "welcome"
    address: Text = ""
    """The URL at which agents are served, if it was asked for."""


class HelloRefused(LinkMessage):
    type: Literal["refused"] = "refused"
    reason: Text


class CallDecided(LinkMessage):
    """The decision about a call."""

    type: Literal["decision"] = "decision"
    call: Number
    allow: bool
    arguments: dict[str, Any] | None = None
    """Those that the person changed; None: as they were asked."""
    words: Text = ""
    """The reason, for the model."""
    by: Literal["user", "policy"] = "policy"
    listed_within: Seconds | None = None
    """Seconds that the tool's listing may be old for this decision."""


class ReplyError(BaseModel):
    """Code and message of a JSON-RPC error."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)

    code: int
    message: Text


class InboxReply(LinkMessage):
    """The answer to a server's question: a result or an error."""

    type: Literal["reply"] = "reply"
    number: Number
    result: dict[str, Any] | None = None
    error: ReplyError | None = None


class EndSession(LinkMessage):
    """The person disconnects the agent: its server ends."""

    type: Literal["disconnect"] = "disconnect"


class AgentList(LinkMessage):
    """The answer to a ``hello`` that asks for the list; see ``mcphost agents --json``."""

    type: Literal["agents"] = "agents"
    agents: list[dict[str, Any]]


FromGate = (
    Hello
    | MessageCopy
    | AgentNamed
    | CallAsked
    | CallWithdrawn
    | CallOverdue
    | CallDoubted
    | CallForwarded
    | CallEnded
    | InboxRequest
    | InboxRequestGone
)
FromScreen = Welcome | HelloRefused | CallDecided | InboxReply | EndSession | AgentList

_Shape = TypeVar("_Shape")

_from_gate: Final[TypeAdapter[FromGate]] = TypeAdapter(
    Annotated[FromGate, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
_from_screen: Final[TypeAdapter[FromScreen]] = TypeAdapter(
    Annotated[FromScreen, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def read_from_gate(line: bytes) -> FromGate:
    """Read a line of a tap or gate. Raises InvalidLink. Blocks for long with a line over `IN_STEPS`."""
    return _read(line, _from_gate)


def read_from_gate_in_steps(line: bytes) -> Generator[None, None, FromGate]:
    """As `read_from_gate`, yielding after each short step."""
    try:
        value = yield from parse_in_steps(line, MESSAGE_ITEMS, JSON_DEPTH)
    except Refused as refused:
        raise _not_json(refused) from None
    return _shaped(value, _from_gate)


def read_from_screen(line: bytes) -> FromScreen:
    """Read a line of the screen. Raises InvalidLink."""
    return _read(line, _from_screen)


def _read(line: bytes, shapes: TypeAdapter[_Shape]) -> _Shape:
    if len(line) > LINE_BYTES:
        raise InvalidLink(f"a line is longer than {LINE_BYTES} bytes")
    try:
        value = parse(line, JSON_DEPTH)
    except Refused as refused:
        raise _not_json(refused) from None
    return _shaped(value, shapes)


def _shaped(value: object, shapes: TypeAdapter[_Shape]) -> _Shape:
    try:
        return shapes.validate_python(value)
    except ValidationError as error:
        raise InvalidLink(_first_problem(error)) from None


def _not_json(refused: Refused) -> InvalidLink:
    return InvalidLink(f"a line is not JSON: {refused}")


def _first_problem(error: ValidationError) -> str:
    """The first problem by place and kind, without the value: it is hostile."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(each)[:40] for each in first["loc"][:6]) or "message"
    return f"{place}: {first['type']}"
