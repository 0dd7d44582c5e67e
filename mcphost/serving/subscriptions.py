"""The streams on which modern clients hear of changes.

Specification: 2026-07-28 basic/patterns/subscriptions, extensions/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcphost.json_values import as_dict, texts_in
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import META_PREFIX, has_extension
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError
from mcphost.serving.served_request import Json, RequestKey, ServedRequest

SUBSCRIPTION_ID: Final = f"{META_PREFIX}subscriptionId"
OPEN_LISTENERS: Final = 16
"""Streams of one client: it needs one, and a second while it changes the filter."""

SUBSCRIBED_ITEMS: Final = 1_000
"""Resources of a session, or entries of a filter: more than any person watches."""

URIS: Final = "resourceSubscriptions"
TASKS: Final = "taskIds"


class SubscriptionStreams:
    """The open ``subscriptions/listen`` requests of one client.

    ``send`` writes a message; ``changed`` is called when `uris` may have changed.
    """

    def __init__(self, send: Callable[[Any, RequestKey], None], changed: Callable[[], object]) -> None:
        self._send, self._changed = send, changed
        self._open: dict[RequestKey, tuple[ServedRequest, Json]] = {}

    @property
    def uris(self) -> frozenset[str]:
        """The resources whose changes are announced."""
        return frozenset().union(*(honoured.get(URIS, ()) for _, honoured in self._open.values()))

    def listen(self, request: ServedRequest, capabilities: Mapping[str, Any]) -> None:
        """Announce what this server can, from now on. Raises RpcError."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            raise InvalidParamsError("notifications is not an object.")
        if TASKS in wanted:
            request.declaration.require_tasks()
        if len(self._open) >= OPEN_LISTENERS:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"This client already has {OPEN_LISTENERS} open subscriptions.")
        key = request.key
        assert key is not None
        honoured = _honoured(wanted, capabilities)
        self._open[key] = request, honoured
        request.on_cancel = lambda: self._forget(key)
        self._announce(key, "notifications/subscriptions/acknowledged", {"notifications": honoured})
        self._changed()

    def list_changed(self, kind: str) -> None:
        for key, (_, wanted) in self._open.items():
            if wanted.get(f"{kind}ListChanged"):
                self._announce(key, f"notifications/{kind}/list_changed", {})

    def resource_updated(self, uri: str) -> None:
        for key, (_, wanted) in self._open.items():
            if uri in wanted.get(URIS, ()):
                self._announce(key, "notifications/resources/updated", {"uri": uri})

    def task_changed(self, task: Json) -> None:
        for key, (_, wanted) in self._open.items():
            if task["taskId"] in wanted.get(TASKS, ()):
                self._announce(key, "notifications/tasks", task)

    def close(self) -> None:
        """End all streams, and say so."""
        for key, (request, _) in list(self._open.items()):
            request.finish({"_meta": {SUBSCRIPTION_ID: key}})
            # The specification's pages on subscriptions and on cancellation demand one each.
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}}, key)
        self._open.clear()

    def _forget(self, key: RequestKey) -> None:
        del self._open[key]
        self._changed()

    def _announce(self, key: RequestKey, method: str, params: Json) -> None:
        stamped = params | {"_meta": {SUBSCRIPTION_ID: key}}
        self._send({"jsonrpc": "2.0", "method": method, "params": stamped}, key)


def _honoured(wanted: Json, capabilities: Mapping[str, Any]) -> Json:
    """The part of the filter that these capabilities of the server keep."""
    kinds = [kind for kind in ("tools", "prompts", "resources") if as_dict(capabilities.get(kind)).get("listChanged")]
    honoured: Json = {name: True for kind in kinds if wanted.get(name := f"{kind}ListChanged") is True}
    if URIS in wanted and as_dict(capabilities.get("resources")).get("subscribe"):
        honoured[URIS] = texts_in(wanted[URIS])[:SUBSCRIBED_ITEMS]
    if TASKS in wanted and has_extension(TASKS_EXTENSION, capabilities):
        honoured[TASKS] = texts_in(wanted[TASKS])[:SUBSCRIBED_ITEMS]
    return honoured
