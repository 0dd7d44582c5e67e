"""How a session is opened as the configuration wants it: with which limits, and what it must offer."""

from __future__ import annotations

from mcphost.client.client import Client, Identity, Patience, Session
from mcphost.client.inputs import InputHandler
from mcphost.client.listener import Listener
from mcphost.client.listing import ListLimits
from mcphost.config import Limits, ServerConfig
from mcphost.errors import CapabilityMissing
from mcphost.protocol.declared import Declared
from mcphost.protocol.revisions import LEGACY, find_revision
from mcphost.transports.base import Transport


def new_client(
    transport: Transport,
    listener: Listener,
    identity: Identity,
    config: ServerConfig,
    limits: Limits,
    answers: tuple[InputHandler, Declared],
) -> Client:
    """A client for one connection, not yet open; ``answers`` is who answers what the server asks, and what it may."""
    handler, declared = answers
    return Client(
        transport,
        listener,
        identity,
        capabilities=declared.under,
        handler=handler,
        minimum=find_revision(config.minimum_version) or LEGACY[0],
        patience=Patience(config.tool_timeout_sec, config.tool_timeout_max_sec),
        list_limits=ListLimits(limits.list_pages, limits.list_items, limits.list_seconds),
        pending_inputs=limits.pending_server_requests,
    )


def check_required(session: Session, config: ServerConfig) -> None:
    """Raise CapabilityMissing where the server does not offer what the user said it must."""
    for needed in config.required_capabilities:
        if not isinstance(session.server.capabilities.get(needed), dict):
            raise CapabilityMissing("required_capabilities", needed)
