"""The strict base model of all tables, and the types of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field
from pydantic_core import PydanticCustomError

from mcphost.config.references import VARIABLE, Reference, parse

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
VARIABLE_NAME = re.compile(r"[^=\x00-\x1f\x7f]{1,256}")
"""An environment variable that a process may get; a reference names only those of `VARIABLE`."""
BINDING_ID = re.compile(r"[a-z][a-z_-]{0,30}(?:\.[a-z_-]{1,30})?")
ALIAS = re.compile(r"(?=.{1,8}$)[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")
_REVISION = re.compile(r"\d{4}-\d{2}-\d{2}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


class ConfigTable(BaseModel):
    """A table of the file: immutable, no unknown keys, no conversion between TOML's types."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # an input may be a secret
        defer_build=True,  # keeps the import fast: schemas are built when a file is read
    )


def misplaced(key: str, sentence: str) -> PydanticCustomError:
    """Return an error about a whole table that should be reported at the line of its ``key``."""
    return PydanticCustomError("misplaced", "{sentence}", {"sentence": sentence, "key": key})


def server_name(name: str) -> str:
    """Return ``name`` if it may name a server or a model. Raises ValueError."""
    if not _NAME.fullmatch(name):
        raise ValueError("a name has 1 to 64 letters, digits, '_', '.' or '-', and does not start with '-'")
    return name


_INSTANCE: Final = re.compile(rf"(?P<entry>{_NAME.pattern})@[A-Za-z0-9_.-]{{1,64}}")


@lru_cache(maxsize=1024)  # asked for at each call of a tool
def entry_of(server: str) -> str:
    """The entry that the server runs; only an instance has another name, ``ENTRY@AGENT``."""
    found = _INSTANCE.fullmatch(server)
    return server if found is None else found["entry"]


def reason_against_url(url: str) -> str | None:
    """Return why ``url`` (without references) cannot be a server's address, or None."""
    if _CONTROLS.search(url) or " " in url:
        return "holds a space or a control character"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must start with https:// or http:// and name a host"
    if "@" in parts.netloc:
        return "must not hold a user name or password; use http_headers or bearer_token_env_var"
    return "must not have a #fragment" if parts.fragment else None


def _text(text: str) -> str:
    parse(text)
    if "\0" in text:
        raise ValueError("holds a NUL character, which no program or header can take")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; leave the key out or give it a value")
    return text


def _location(text: str) -> str:
    if _CONTROLS.search(text):
        raise ValueError('holds a control character; in "..." a \\ begins an escape, so write \\\\ for it')
    return text


def _full_path(text: str) -> str:
    if not text.startswith(("/", "~", "${")):
        raise ValueError("must be a full path, from / or ~ on")  # one in a reference is validated once it is resolved
    return text


def _url(text: str) -> str:
    pieces = parse(text)
    if isinstance(pieces[0], Reference):
        return text  # may be the whole URL; validated again once it is resolved
    # A digit replaces each reference, since it is valid in a host, a port and a path.
    known = "".join("1" if isinstance(piece, Reference) else piece for piece in pieces)
    if reason := reason_against_url(known):
        raise ValueError(reason)
    return text


def reason_against_document(url: str) -> str | None:
    """Return why ``url`` (without references) cannot be the address of a client metadata document, or None."""
    if reason := reason_against_url(url):
        return reason
    parts = urlsplit(url)
    return "must be https and have a path" if parts.scheme != "https" or parts.path in ("", "/") else None


def _plain_url(text: str) -> str:
    if "${" in text:
        raise ValueError("takes no reference; write the address itself")
    if reason := reason_against_url(text):
        raise ValueError(reason)
    return text


def _document_url(text: str) -> str:
    if all(isinstance(piece, str) for piece in parse(text)) and (reason := reason_against_document(text)):
        raise ValueError(reason)
    return text


def _private_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme == "http" and parts.hostname and "${" not in parts.hostname:
        from mcphost.protocol.urls import is_loopback

        if not is_loopback(parts.hostname):
            raise ValueError("must be https; http is for this machine alone")
    return text


def _pattern(text: str) -> str:
    if not text:
        raise ValueError("is empty, which would match everything; write .* for that")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


def _header_value(text: str) -> str:
    if _CONTROLS.search(text.replace("\t", " ")):
        raise ValueError("holds a line break or another control character")
    if not all(piece.isascii() for piece in parse(text) if isinstance(piece, str)):
        raise ValueError("holds a character beyond ASCII, which no header carries")
    return text


class InSchema:
    """The rule of a validator as keywords of JSON Schema; several patterns all hold."""

    def __init__(self, pattern: str = "", **keywords: Any) -> None:
        self._pattern, self._keywords = pattern, keywords

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema) | self._keywords
        if self._pattern and "pattern" in schema:
            schema["allOf"] = [*schema.get("allOf", ()), {"pattern": self._pattern}]
        elif self._pattern:
            schema["pattern"] = self._pattern
        return schema


def _matching(pattern: re.Pattern[str], sentence: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(sentence)
        return text

    return AfterValidator(check)


def _as_pattern(pattern: re.Pattern[str]) -> InSchema:
    return InSchema(f"^(?:{pattern.pattern})$")


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if double := first_double(names):
        raise ValueError(f"names {double!a} twice")
    return names


def first_double(names: Iterable[str]) -> str | None:
    """Return the first name that occurred before, or None."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


_T = TypeVar("_T")

_REFERENCE = rf"\$\{{(?:(?:keyring|file):[^}}]+|{VARIABLE}(?::-[^}}]*)?)\}}"
_TEXT = rf"^(?:[^$\x00]|\$*(?:{_REFERENCE}|\$\$\{{)|\$+[^{{$\x00])*\$*$"
_HOST = rf"(?:[^\s/?#@:$]|{_REFERENCE})+|\[[0-9A-Fa-f:.]+\]"
_URL = rf"^(?:\$\{{.*|https?://(?:{_HOST})(?::(?:[0-9]|{_REFERENCE})*)?(?:[/?](?:[^\s#$]|\$[^{{]|{_REFERENCE})*)?#?)$"
_PRIVATE = r"^(?:\$\{|https://|http://(?:[^/?#]*(?:localhost|\$\{)|127\.|\[))"
_PLAIN_URL = r"^https?://[^/?#@\s$]+(?:[/?][^\s#$]*)?$"
_PRINTABLE = rf"^(?:[\t\x20-~]|{_REFERENCE})*$"

Text = Annotated[str, AfterValidator(_text), InSchema(_TEXT)]
"""Free text in which ``${…}`` references may stand."""
Filled = Annotated[Text, AfterValidator(_filled), InSchema(r"\S")]
Location = Annotated[Filled, AfterValidator(_location), InSchema(r"^[^\x00-\x1f\x7f]*$")]
"""A program or a folder, where a control character comes from a path in ``"…"``, such as ``"C:\\new"``."""
FullPath = Annotated[Location, AfterValidator(_full_path), InSchema(r"^(?:[/~]|\$\{)")]
Url = Annotated[Filled, AfterValidator(_url), InSchema(_URL)]
PrivateUrl = Annotated[Url, AfterValidator(_private_url), InSchema(_PRIVATE)]
"""The address of a party that gets secrets: https, or on this machine."""
PlainUrl = Annotated[str, AfterValidator(_plain_url), InSchema(_PLAIN_URL)]
"""A URL in which no reference may stand."""
DocumentUrl = Annotated[Url, AfterValidator(_document_url), InSchema(r"^(?:\$\{|https://[^/]+/.)")]
"""The URL of a client metadata document: https, and with a path, since it serves as client id."""
HeaderName = Annotated[str, _matching(HEADER_NAME, "is not the name of an HTTP header"), _as_pattern(HEADER_NAME)]
HeaderValue = Annotated[Text, AfterValidator(_header_value), InSchema(_PRINTABLE)]
VariableName = Annotated[
    str, _matching(VARIABLE_NAME, "is not the name of an environment variable"), _as_pattern(VARIABLE_NAME)
]
BindingId = Annotated[
    str,
    _matching(BINDING_ID, "is not the id of a key, such as form.submit"),
    _as_pattern(BINDING_ID),
]
Variable = Annotated[
    str, _matching(re.compile(VARIABLE), "is not a name that ${NAME} can have"), _as_pattern(re.compile(VARIABLE))
]
Name = Annotated[str, AfterValidator(server_name), _as_pattern(_NAME)]
Alias = Annotated[
    str,
    _matching(ALIAS, "is not an alias: 1 to 8 letters and digits, with single '_' or '-' between them"),
    _as_pattern(ALIAS),
]
Pattern = Annotated[str, AfterValidator(_pattern), InSchema(minLength=1, format="regex")]
"""A regular expression as in JSON Schema: it may match anywhere in a text."""
Revision = Annotated[
    str, _matching(_REVISION, 'is not a protocol revision; write one like "2025-06-18"'), _as_pattern(_REVISION)
]

Several = Annotated[tuple[_T, ...], Field(strict=False), FailFast()]
"""A TOML list as a tuple. Only the first bad element is reported, since there may be a million."""
Distinct = Annotated[Several[_T], AfterValidator(_distinct), InSchema(uniqueItems=True)]

Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
