from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import InvalidResult
from mcphost.protocol.models.elicitation import FormElicitation, UrlElicitationRequest, read_elicitation

FIELD: dict[str, Any] = {"type": "string", "description": None, "enum": None, "minLength": None, "default": None}


@pytest.mark.requirement("ELIC-26")
def test_a_form_may_have_a_schema_name_and_a_pattern() -> None:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^x"}},
    }
    read = read_elicitation({"message": "m", "requestedSchema": schema}, has_id=False)
    assert isinstance(read, FormElicitation)
    assert read.schema == schema


@pytest.mark.parametrize(
    ("asked", "schema"),
    [
        (
            {"$schema": None, "type": "object", "required": None, "title": None, "properties": {"a": FIELD}},
            {"type": "object", "properties": {"a": {"type": "string", "default": None}}},
        ),
        ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "description": ["no"], "properties": {"a": {"type": "string", "title": 5}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
    ],
)
def test_a_form_with_null_and_odd_keywords_is_the_form_without_them(
    asked: dict[str, Any], schema: dict[str, Any]
) -> None:
    read = read_elicitation({"message": "m", "mode": None, "requestedSchema": asked})
    assert isinstance(read, FormElicitation)
    assert read.schema == schema


@pytest.mark.requirement("ELIC-25")
def test_a_page_has_an_id_in_the_older_revision_only() -> None:
    page = {"mode": "url", "message": "m", "url": "https://h/x"}
    read = read_elicitation(page, has_id=False)
    assert isinstance(read, UrlElicitationRequest)
    assert read.elicitation == ""
    with pytest.raises(InvalidResult, match="elicitationId"):
        read_elicitation(page)
