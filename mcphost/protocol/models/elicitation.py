"""Elicitation requests, of forms and of URLs.

Specification: client/elicitation (2025-06-18, 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcphost.errors import InvalidResult
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.forms.fields import read_form
from mcphost.protocol.forms.form import collect, fill, outside_elicitation
from mcphost.protocol.schema.traversal import plain_schema
from mcphost.protocol.schema.validation import SchemaRefused, check_schema
from mcphost.protocol.urls import PageAddress, read_address

__all__ = [
    "FormElicitation",
    "PageAddress",
    "UrlElicitationRequest",
    "read_elicitation",
    "read_required",
]

MESSAGE_CHARACTERS: Final = 10_000
"""Characters kept of a message: several screens. The rest is only counted."""

ID_CHARACTERS: Final = 1000
"""Characters of an elicitation id, which is kept until the elicitation is complete."""

PAGES: Final = 10
"""URL elicitations that one refused call may require."""


@dataclass(frozen=True, slots=True)
class FormElicitation:
    """A form to fill in, with a schema of the flat subset of JSON Schema."""

    message: str
    schema: Mapping[str, Any]

    def defaults(self) -> dict[str, Any]:
        """The values of the untouched form."""
        form = read_form(self.schema)
        values, _ = collect(form, fill(form))
        return values


@dataclass(frozen=True, slots=True)
class UrlElicitationRequest:
    """A page to visit. ``elicitation`` is the server's opaque id; empty since 2026-07-28."""

    message: str
    address: PageAddress
    elicitation: str


def read_elicitation(params: Mapping[str, Any], *, has_id: bool = True) -> FormElicitation | UrlElicitationRequest:
    """Parse the params of an elicitation; the default mode is a form. Raises InvalidResult, worded for the server.

    ``has_id``: does its revision identify pages to visit?
    """
    if params.get("mode") == "url":
        return _read_url(params, has_id=has_id)
    return FormElicitation(_message(params), _schema(params.get("requestedSchema")))


def read_required(data: Any) -> list[UrlElicitationRequest]:
    """The URL elicitations that error -32042 requires. Raises InvalidResult for none or too many."""
    listed = as_dict(data).get("elicitations")
    if not isinstance(listed, list) or not listed:
        raise InvalidResult("the error names no page to visit")
    if len(listed) > PAGES:
        raise InvalidResult(f"the error names {len(listed)} pages to visit; more than {PAGES} are not shown")
    if not all(isinstance(each, dict) and each.get("mode") == "url" for each in listed):
        raise InvalidResult("the error asks for something else than pages to visit")
    return [_read_url(each) for each in listed]


def _read_url(params: Mapping[str, Any], *, has_id: bool = True) -> UrlElicitationRequest:
    if not has_id:
        return UrlElicitationRequest(_message(params), read_address(params.get("url")), "")
    elicitation = params.get("elicitationId")
    if not isinstance(elicitation, str) or not elicitation or len(elicitation) > ID_CHARACTERS:
        raise InvalidResult(f"elicitationId must be text of 1 to {ID_CHARACTERS} characters")
    return UrlElicitationRequest(_message(params), read_address(params.get("url")), elicitation)


def _message(params: Mapping[str, Any]) -> str:
    message = params.get("message")
    if not isinstance(message, str):
        raise InvalidResult("message must be text")
    if len(message) <= MESSAGE_CHARACTERS:
        return message
    rest = len(message[MESSAGE_CHARACTERS:].encode("utf-8", "replace"))
    return f"{message[:MESSAGE_CHARACTERS]} … {size_text(rest)} more"


def _schema(schema: Any) -> Mapping[str, Any]:
    # It must be small, of the flat subset, and satisfiable.
    if isinstance(schema, dict) and schema.get("properties") == []:  # PHP's empty object
        schema = {**schema, "properties": {}}
    try:
        check_schema(schema)
    except SchemaRefused as refused:
        raise InvalidResult(f"requestedSchema is not usable: {refused}") from None
    schema = plain_schema(schema)
    if reason := outside_elicitation(schema):
        raise InvalidResult(f"requestedSchema is outside the subset for elicitation: {reason}")
    for name in schema.get("required", ()):
        if name not in schema["properties"]:
            raise InvalidResult(f"requestedSchema requires {show_line(str(name), 80)!r}, which is not a property of it")
    checked: Mapping[str, Any] = schema
    return checked
