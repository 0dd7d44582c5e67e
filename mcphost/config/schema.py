"""The JSON Schema of the configuration, for editors: made from the models and their docstrings.

It refuses nothing that mcphost takes. What one table says of another, such as a model's name in
``[servers.NAME.sampling]``, it cannot check, and an entry may have its ``command`` or ``url`` in ``servers.toml``.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mcphost.config.identities import OPENID, IdentityConfig
from mcphost.config.loading import MAX_ENTRIES
from mcphost.config.model_providers import HOSTED_PROVIDERS
from mcphost.config.models import Config, ModelConfig
from mcphost.config.servers import (
    ADDRESS_KEYS,
    CLIENT_KEYS,
    PROGRAM_KEYS,
    PROTOCOL_HEADERS,
    USERS_GRANTS,
    WORKLOAD_KEYS,
    AssertionConfig,
    OAuthConfig,
    ServerConfig,
)

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

NOT_KEYS: Final = ("path", "added", "profile")
"""Fields of the whole configuration that no file has."""


def config_schema() -> dict[str, Any]:
    """The JSON Schema of ``config.toml``, ``servers.toml`` and a project's ``mcphost.toml``."""
    schema = Config.model_json_schema(schema_generator=_Generator)
    sections = {name: section for name, section in schema["properties"].items() if name not in NOT_KEYS}
    for name in ("servers", "models", "identity", "profiles"):
        sections[name]["maxProperties"] = MAX_ENTRIES
    alias = {**sections["servers"], "description": "The same as servers, as other programs call it."}
    return {
        "$schema": DIALECT,
        "title": "mcphost configuration",
        **schema,
        "description": "config.toml, servers.toml and mcphost.toml of mcphost",
        "properties": {**sections, "mcp_servers": alias},
    }


class _Generator(GenerateJsonSchema):
    """Writes what TOML can hold: no null, and no default that only says that a key is absent."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        default = schema.get("default")
        if default is None or isinstance(default, BaseModel):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        for pattern, values in made.pop("patternProperties", {}).items():  # which would let any other name pass
            made |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return made

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made, model = super().model_schema(schema), schema["cls"]
        for name, text in documented_keys(model).items():
            if name in made["properties"]:
                made["properties"][name] = {"description": _markdown(text), **made["properties"][name]}
        made["description"] = _markdown(made.get("description", ""))
        made.pop("title", None)
        return made | _RULES.get(model, {})

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def documented_keys(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of a table's keys, read from the source when they are needed; none are kept at run time."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind.__module__.startswith(__package__):
            found |= _documented(_class(kind))
    return {name: text for name, text in found.items() if name in model.model_fields}


def _class(kind: type) -> ast.ClassDef:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)


def _documented(table: ast.ClassDef) -> dict[str, str]:
    """A string right after a field is its docstring."""
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(table.body, table.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _markdown(docstring: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(docstring.split()))


def _none_of(keys: Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys(keys, False)


def _transports(*names: str) -> dict[str, Any]:
    return {"transport": {"enum": ["auto", *names]}}


def _where(key: str, *values: str, then: Mapping[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {key: {"enum": list(values)}}, "required": [key]}, "then": then}


def _any_case(name: str) -> str:
    """A pattern for a name in capital or small letters; not every dialect of regular expressions has a flag for it."""
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in name)


_PROTOCOLS_OWN: Final = "|".join([*map(_any_case, sorted(PROTOCOL_HEADERS)), f"{_any_case('mcp-param-')}.*"])
_OWN_HEADERS: Final = {"propertyNames": {"not": {"pattern": f"^(?:{_PROTOCOLS_OWN})$"}}}

_RULES: Final[Mapping[type[BaseModel], dict[str, Any]]] = {
    ServerConfig: {
        "allOf": [
            {"not": {"required": ["command", "url"]}},
            {"if": {"required": ["command"]}, "then": {"properties": _none_of(ADDRESS_KEYS) | _transports("stdio")}},
            {"if": {"required": ["url"]}, "then": {"properties": _none_of(PROGRAM_KEYS) | _transports("http", "sse")}},
            _where("transport", "sse", then={"properties": {"protocol": {"enum": ["auto", "legacy"]}}}),
            {"properties": {"http_headers": _OWN_HEADERS, "env_http_headers": _OWN_HEADERS}},
        ],
    },
    AssertionConfig: {
        "minProperties": 1,
        "maxProperties": 1,
        "allOf": [{"properties": {"command": {"minItems": 1}, "github": {"const": True}}}],
    },
    OAuthConfig: {
        "allOf": [
            {
                **_where(
                    "grant",
                    "workload",
                    then={"required": ["issuer", "assertion"], "properties": _none_of(CLIENT_KEYS)},
                ),
                "else": {"properties": _none_of(WORKLOAD_KEYS)},
            },
            {
                "if": {"required": ["token_endpoint"]},
                "then": {"required": ["grant"], "properties": {"grant": {"enum": list(USERS_GRANTS)}}},
            },
            _where("registration", "static", then={"required": ["client_id"]}),
            _where("registration", "cimd", then={"required": ["client_metadata_url"]}),
            _where(
                "grant",
                "client_credentials",
                then={
                    "required": ["client_id"],
                    "anyOf": [{"required": ["client_secret"]}, {"required": ["private_key"]}],
                },
            ),
            _where(
                "grant",
                "enterprise",
                then={
                    "required": ["identity"],
                    "anyOf": [{"required": ["client_id"]}, {"required": ["client_metadata_url"]}],
                },
            ),
            {
                "if": {"required": ["identity"]},
                "then": {"required": ["grant"], "properties": {"grant": {"enum": ["enterprise"]}}},
            },
            {
                "if": {"required": ["private_key"]},
                "then": {"anyOf": [{"required": ["client_id"]}, {"required": ["client_metadata_url"]}]},
            },
        ],
        "dependentRequired": {"client_secret": ["client_id"]},
    },
    IdentityConfig: {"allOf": [{"properties": {"scopes": {"contains": {"const": OPENID}}}}]},
    ModelConfig: {
        "allOf": [_where("provider", *HOSTED_PROVIDERS, then={"required": ["model"]})],
        "dependentRequired": {"input_price": ["output_price"], "output_price": ["input_price"]},
    },
}
"""The rules about several keys together that the validators of these models enforce."""
