"""Every exception mcphost raises on purpose, and whose fault each one is.

    McphostError
    ├── UsageError               the command line cannot be understood
    ├── ConfigError              the user's file: says which file, which line, and what to write instead
    │   └── UnresolvedReference  a ${NAME} that has no value; only the server that needs it is stopped
    ├── PeerError                the server broke the rules
    │   ├── MessageTooLarge      a message over the limit, or too complex to read in time
    │   ├── VersionRefused       it speaks a revision we do not, or one below the configured minimum
    │   ├── NoSharedRevision     it and mcphost have no revision in common that the configuration allows
    │   ├── InvalidResult        an answer of the wrong shape
    │   │   └── NoAnswerFound    it writes lines that are not messages, or answers to unknown request ids
    │   ├── SkillRefused         a skill or one of its files is not as its entry says, or its entry is not sound
    │   ├── InvalidLink          a program at mcphost's socket broke the rules of it
    │   └── InvalidSampling      it asks for a model's answer in a way that the rules do not allow
    ├── TransportError           the wire
    │   ├── SpawnFailed          the program could not be started
    │   ├── ConnectionLost       it was there and is gone, or cannot be reached; carries exit code and last of stderr
    │   │   └── ProbeFailed      the program did not bear the probe; it is started again without it
    │   ├── EraUnclear           the program answered the probe late; it is started again in the newer era
    │   ├── HttpStatusError      an HTTP answer that holds no message: its status, content type and first characters
    │   ├── SessionExpired       the server no longer knows the session: a new one must be opened
    │   └── AuthorizationRequired  the server wants a sign-in first, or more than this one allows
    ├── ModelError               a language model: names the entry of the configuration, and what to do
    │   ├── ModelUnreachable     no connection, or nothing came in time
    │   ├── ModelKeyRefused      it wants a key, or another one
    │   ├── ModelRefused         it does not take this request: too long, no such model, a kind of content it lacks
    │   ├── ModelOverloaded      too many requests, or it is in trouble; perhaps with the seconds to wait
    │   ├── ModelAnswerCut       the answer broke off
    │   └── ModelAnswerMalformed  the response is not an answer
    ├── SignInFailed             signing in did not work: says what was wrong, and at which party
    ├── RequestError             one request, not the connection
    │   ├── ServerError          the server answered with a JSON-RPC error: code, message and data as they came
    │   │   ├── RequestRefused   it found fault with the headers or declared capabilities: says what was sent
    │   │   │   └── ClientCapabilityMissing  it needs capabilities that mcphost did not declare: names them
    │   │   └── ResourceMissing  it has no resource of this URI
    │   ├── TaskStopped          the server stopped the task that was to bring the answer
    │   ├── TaskExpired          the task did not end in the time for which its server keeps it
    │   ├── RequestTimeout       no answer within the limit
    │   ├── ListingFailed        what the server offers is not known: it could not be listed
    │   ├── CapabilityMissing    never sent: the server did not offer this
    │   │   └── CapabilityWithheld  the server offers it, but is not offered it by the configuration
    │   └── MethodRemoved        never sent: the negotiated revision no longer has this method
    ├── PastFailure              why the result of a call of an earlier run is not here
    └── NotDone                  we decided against it
        ├── Declined             policy or the user said no
        ├── InputNotGiven        the server needs input for its answer, and did not get it
        ├── InvalidArguments     the arguments do not fit the tool's schema
        ├── ServerNotReady       the server is not connected
        └── UnknownName          no such server, tool or other thing

A message never holds a secret: it may be shown, logged and copied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

PASSING: Final = frozenset({408, 425, 429, *range(500, 600)})
"""HTTP statuses that say nothing of the next try: too slow, too early, too often, or the server is in trouble."""

DETAILS: Final = 500
"""Characters of an error's data that its sentence quotes."""

NO_USE: Final = frozenset({-32600, -32601, -32602})
"""JSON-RPC error codes that say something of what was sent, which will be the same the next time."""


class McphostError(Exception):
    """The parent of all; ``str()`` is one sentence for a person."""

    lasting = False
    """True if trying again meets the same until the user changes something."""
    after_probe = ""
    """A clause about an earlier failure of ``server/discover`` that may have contributed; else empty."""


class UsageError(McphostError):
    """The command line cannot be understood."""

    lasting = True


class ConfigError(McphostError):
    """Something in a configuration file is wrong. ``line`` counts from 1; None when it is the whole file."""

    lasting = True

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        self.message, self.path, self.line = message, path, line
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(place + message)


class UnresolvedReference(ConfigError):
    """A ``${…}`` reference in ``field`` could not be resolved; ``reference`` is its text in the file."""

    def __init__(self, field: str, reference: str, reason: str) -> None:
        self.field, self.reference = field, reference
        super().__init__(f"{field}: {reference} {reason}")


class PeerError(McphostError):
    """The server sent what the protocol does not allow."""

    lasting = True


class MessageTooLarge(PeerError):
    """A message over ``limit`` (bytes, or objects and arrays, as the message says)."""

    def __init__(self, message: str, limit: int) -> None:
        self.limit = limit
        super().__init__(message)


class VersionRefused(PeerError):
    """The server wants a revision that this connection may not use."""

    def __init__(self, offered: str, received: str, reason: str) -> None:
        self.offered, self.received = offered, received
        super().__init__(f"the server wants protocol version {received!r}, {reason}; mcphost offered {offered}")


class NoSharedRevision(PeerError):
    """There is no revision that the server, mcphost and the configuration all allow."""


class InvalidResult(PeerError):
    """The answer to a request has the wrong shape."""


class NoAnswerFound(InvalidResult):
    """The server writes something, but nothing of it answers the request."""


class SkillRefused(PeerError):
    """A skill or a file of it must not be used. ``finding`` names the fault; ``differences`` the fields that differ."""

    def __init__(self, finding: str, sentence: str, differences: Sequence[Any] = ()) -> None:
        self.finding, self.differences = finding, tuple(differences)
        super().__init__(sentence)


class InvalidLink(PeerError):
    """A message of mcphost's socket cannot be read."""


class InvalidSampling(PeerError):
    """A request for an answer of a model breaks the rules; ``problems`` are (path, sentence) pairs, for the server."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{path}: {text}" if path else text for path, text in problems))


class TransportError(McphostError):
    """The wire failed."""


class SpawnFailed(TransportError):
    """The server's program could not be started."""

    lasting = True


class ConnectionLost(TransportError):
    """The connection ended. ``exit_code`` is negative for a signal, None while the process runs or without one."""

    def __init__(
        self, message: str, *, exit_code: int | None = None, stderr_tail: Sequence[str] = (), lasting: bool = False
    ) -> None:
        self.exit_code, self.stderr_tail, self.lasting = exit_code, tuple(stderr_tail), lasting
        super().__init__(message)


class ConnectionClosed(ConnectionLost):
    """mcphost closed the connection; ``reason`` is why, where that is known."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"mcphost closed the connection{f': {reason}' if reason else ''}")


class ProbeFailed(ConnectionLost):
    """The server's program exited, refused ``initialize`` or stopped answering after ``server/discover``.

    Servers from before that request may do so: the next process is to be opened with ``initialize`` only. ``silent``:
    it stopped answering, which may also have other reasons.
    """

    def __init__(
        self, message: str, *, exit_code: int | None = None, stderr_tail: Sequence[str] = (), silent: bool = False
    ) -> None:
        self.silent = silent
        super().__init__(message, exit_code=exit_code, stderr_tail=stderr_tail)


class EraUnclear(TransportError):
    """The server's program answered ``server/discover`` late, and the ``initialize`` after it as well.

    Some programs speak the older era from then on: the next process is to be opened with ``server/discover`` only.
    """


class HttpStatusError(TransportError):
    """An HTTP answer without the message that was due. ``start`` is what its body began with, safe to show.

    ``content_type`` is as the server wrote it, empty where it wrote none; ``reason`` is a clause that explains.
    """

    def __init__(self, status: int, content_type: str = "", start: str = "", *, reason: str = "") -> None:
        self.status, self.content_type, self.start = status, content_type, start
        self.lasting = status not in PASSING
        kind = f" ({content_type})" if content_type else ""
        explained = "".join(f": {part}" for part in (reason, start) if part)
        super().__init__(f"the server answered HTTP {status}{kind}{explained}")


class SessionExpired(TransportError):
    """The server answered 404 to the session's id; what was sent may or may not have been done.

    ``refused``: it was the answer to the request itself, and not met on the way to its answer.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(message)


class HeldSignIn(NamedTuple):
    """The sign-in that a refused request was sent with, or for want of which it was refused."""

    signed_in: bool = False
    asked: tuple[str, ...] = ()
    """The scopes that were requested, or granted without a request."""
    age: float | None = None
    """Seconds since a person signed in; None: unknown."""
    problem: str = ""
    """Why there is no valid token, as a sentence; empty if nothing went wrong."""
    proof_refused: bool = False
    """True if the proof of the token's key was refused, so that another sign-in does not help."""


HELD_SIGN_IN: Final = "mcphost.sign_in"
"""The extension of an HTTP response that holds the `HeldSignIn` of its request."""


class AuthorizationRequired(TransportError):
    """The server answered 401, or 403 for want of a scope. ``www_authenticate`` is its challenge, as it came.

    ``reason`` is what it says about why, safe to show; ``held`` is None where mcphost signs in nowhere.
    """

    lasting = True

    def __init__(
        self, www_authenticate: str, *, status: int = 401, reason: str = "", held: HeldSignIn | None = None
    ) -> None:
        self.www_authenticate, self.status, self.reason, self.held = www_authenticate, status, reason, held
        words = f"the server wants a sign-in (HTTP {status})"
        if status != 401:
            words = f"the server wants more than this sign-in allows (HTTP {status})"
        elif held is not None and held.problem:
            words = f"{words}; {held.problem}"
        elif held is not None and held.signed_in:
            words = f"the server refuses this sign-in (HTTP {status})"
        super().__init__(f"{words}{'; it says: ' if held and held.problem else ': '}{reason}" if reason else words)

    def again(self) -> AuthorizationRequired:
        """A new exception with the same content, since raising one twice joins their tracebacks."""
        return AuthorizationRequired(self.www_authenticate, status=self.status, reason=self.reason, held=self.held)


class ModelError(McphostError):
    """A language model gave no answer, or not a whole one. ``entry`` is its name in the configuration."""

    def __init__(self, entry: str, message: str) -> None:
        self.entry = entry
        super().__init__(f"model {entry}: {message}")


class ModelUnreachable(ModelError):
    """There was no connection, or none in time."""


class ModelKeyRefused(ModelError):
    """A key is missing, or the one there is was not accepted."""

    lasting = True


class ModelRefused(ModelError):
    """The request was not taken, and would not be another time."""

    lasting = True


class ModelOverloaded(ModelError):
    """The model is overloaded. ``seconds`` is the wait it asks for, None if it names none."""

    def __init__(self, entry: str, message: str, *, seconds: float | None = None) -> None:
        self.seconds = seconds
        super().__init__(entry, message)


class ModelAnswerCut(ModelError):
    """The answer broke off before its end."""


class ModelAnswerMalformed(ModelError):
    """The response cannot be read as an answer, or is larger than any."""


class SignInFailed(McphostError):
    """A sign-in, or the renewal of one, ended without a token. ``code`` is OAuth's error code, where there was one."""

    def __init__(self, message: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class RequestError(McphostError):
    """One request failed; the connection lives."""


class ServerError(RequestError):
    """The server answered ``method`` with a JSON-RPC error object."""

    def __init__(self, code: int, message: str, data: Any = None, *, method: str = "") -> None:
        self.code, self.message, self.data, self.method = code, message, data, method
        self.lasting = code in NO_USE
        super().__init__(f"{message} ({code})")


class RequestRefused(ServerError):
    """The server found fault with how the request was sent; ``sent`` says what that was."""

    def __init__(self, error: ServerError, sent: str) -> None:
        super().__init__(error.code, error.message, error.data, method=error.method)
        self.sent = sent
        details = "" if error.data is None else f", with {json.dumps(error.data, ensure_ascii=False)[:DETAILS]}"
        self.args = (f"{self.args[0]}{details}; mcphost sent {sent}",)


class ClientCapabilityMissing(RequestRefused):
    """The server needs capabilities that mcphost did not declare: ``required``, those of extensions by identifier.

    The names are the server's, and may be none. If all that it names were declared, these are all of them.
    """

    def __init__(self, error: ServerError, sent: str, required: Sequence[str]) -> None:
        super().__init__(error, sent)
        self.required = tuple(required)


class ResourceMissing(ServerError):
    """The server has no resource ``uri`` (the one it names, or else the one that was asked for)."""

    def __init__(self, uri: str, error: ServerError) -> None:
        super().__init__(error.code, error.message, error.data, method=error.method)
        self.uri = uri
        self.args = (f"resource not found: {uri}; the server says: {self.args[0]}",)


class TaskStopped(RequestError):
    """The server stopped task ``task_id`` before it brought a result; ``reason`` is the server's, perhaps empty."""

    def __init__(self, task_id: str, reason: str = "") -> None:
        self.task_id, self.reason = task_id, reason
        super().__init__(f"the server cancelled the task{f': {reason}' if reason else ''}")


class TaskExpired(RequestError):
    """Task ``task_id`` has not ended, and the ``seconds`` for which its server keeps it are over."""

    def __init__(self, task_id: str, seconds: float) -> None:
        self.task_id, self.seconds = task_id, seconds
        kept = f"in the {seconds:g} s for which the server keeps it" if seconds > 0 else "before the server dropped it"
        super().__init__(f"the task did not end {kept}")


class RequestTimeout(RequestError):
    """No answer to ``method`` after ``seconds``; the server was notified that mcphost stopped waiting.

    ``instead`` says what came that answers no request.
    """

    def __init__(self, method: str, seconds: float, *, hard: bool = False, instead: str = "") -> None:
        self.method, self.seconds, self.hard, self.instead = method, seconds, hard, instead
        why = "in all, progress or not" if hard else "without an answer or a sign of progress"
        super().__init__(f"{method} timed out after {seconds:g} s {why}{f'; {instead}' if instead else ''}")


class ListingFailed(RequestError):
    """The server did not list what it offers; ``timed_out``: not in time."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        self.timed_out = timed_out
        super().__init__(message)


class CapabilityMissing(RequestError):
    """The server did not declare the capability that ``method`` needs; nothing was sent."""

    lasting = True

    def __init__(self, method: str, capability: str) -> None:
        self.method, self.capability = method, capability
        super().__init__(f"the server does not offer {capability}, which {method} needs")


class CapabilityWithheld(CapabilityMissing):
    """The server offers the capability, but mcphost does not use it there; nothing was sent."""

    def __init__(self, method: str, capability: str) -> None:
        super().__init__(method, capability)
        self.args = (f"mcphost does not use {capability} with this server, which {method} needs",)


class MethodRemoved(RequestError):
    """The revision of the session no longer has ``method``; nothing was sent."""

    lasting = True

    def __init__(self, method: str, version: str) -> None:
        self.method, self.version = method, version
        super().__init__(f"protocol version {version} has no {method}")


class PastFailure(McphostError):
    """A call of an earlier run failed, or its result was not kept."""


class NotDone(McphostError):
    """mcphost did not do it."""


class InputNotGiven(NotDone):
    """A server answered ``input_required``, and one of its inputs was not given: the request was abandoned.

    ``method`` is the method of that input, such as ``sampling/createMessage``; ``reason`` is a clause.
    """

    def __init__(self, method: str, reason: str) -> None:
        self.method, self.reason = method, reason
        super().__init__(f"the server needs an answer to {method} to go on, and did not get it: {reason}")


class Declined(NotDone):
    """The answer was no. ``by`` is ``policy``, ``user``, or ``mcphost`` where neither said so; ``rule``: what decided.

    ``reason`` is the explanation that came with the refusal.
    """

    def __init__(self, message: str, *, by: str, rule: str = "", reason: str = "") -> None:
        self.by, self.rule, self.reason = by, rule, reason
        super().__init__(message)


class InvalidArguments(NotDone):
    """The arguments do not fit the schema; ``problems`` are (path, sentence) pairs."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{path or 'arguments'}: {text}" for path, text in problems))


class ServerNotReady(NotDone):
    """The server is not connected now."""


class UnknownName(NotDone):
    """No such server, tool, prompt or resource."""
