"""Checks the arguments of a tool call before anything is asked or sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcphost.errors import InvalidArguments
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.models.tools import Tool

_strict = json.JSONEncoder(allow_nan=False)

_ALWAYS_JSON: Final = frozenset({str, bool, type(None)})
"""Exact types whose values are always valid JSON; most arguments have no others, and need no trial encoding."""


async def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return a note on what could not be checked. Raises InvalidArguments."""
    try:
        if not (type(arguments) is dict and _ALWAYS_JSON.issuperset(map(type, (*arguments, *arguments.values())))):
            _strict.encode(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments([("", f"cannot be written as JSON ({error})")]) from None
    verdict = await validate(tool.input_schema, arguments)
    if verdict.problems:
        raise InvalidArguments([(problem.path, problem.message) for problem in verdict.problems])
    return verdict.note


async def misfit(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """A note on arguments that do not fit or could not be checked: it is the server that refuses them."""
    try:
        return await check_arguments(tool, arguments)
    except InvalidArguments as invalid:
        return f"the arguments do not fit the tool's schema: {invalid}"
