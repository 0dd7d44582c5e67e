"""Recognizes secrets by their name or shape, and masks them.

Every floor uses these rules: configuration, transports, sign-in, models and the traffic view.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

Mask = Callable[[str], str]
"""Replaces the secrets that mcphost knows by `MASK`."""

MASK: Final = "•••"
"""Replaces a secret."""

MIN_SECRET: Final = 6
"""Characters of the shortest secret that is masked wherever it occurs: shorter ones occur by chance in any text."""

MIN_SECRET_SHAPE: Final = 12
"""Characters of the shortest value that is taken for a secret by its shape alone, whatever it is called."""

SECRET_HEADERS: Final = frozenset({
    "authorization", "cookie", "dpop", "mcp-session-id", "proxy-authorization", "set-cookie",
})  # fmt: skip
"""Headers that hold nothing but a secret, in lower case."""

OAUTH_SECRETS: Final = frozenset({
    "access_token", "actor_token", "assertion", "client_assertion", "client_secret", "code_verifier", "id_token",
    "refresh_token", "registration_access_token", "subject_token",
})  # fmt: skip
"""Parameters and JSON members of OAuth that are secret; hardly anything else has these names."""

_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|passphrase|pwd|api[-_]?key|key$|credential|auth(?!or)"
    r"|authorization(?![-_]?(?:server|endpoint|url))|cookie|private|bearer|dsn"
    r"|(?<![a-z])pass$",
    re.IGNORECASE,
)

# On the wire a value that is masked needlessly costs little, so more names count there.
_SECRET_HEADER: Final = r"(?i)auth|session|signature"
_SECRET_PARAMETER: Final = r"(?i)assertion|auth|key|session|signature|verifier|^(?:code|state|sid|sig)$"
_OPEN_HEADERS: Final = frozenset({"www-authenticate", "proxy-authenticate", "sec-websocket-key"})
"""Their names look secret, but anybody may ask for their values."""

_USER: Final = r"(?<=://)[^/?#\s@]*@"
_URL_PARAMETER: Final = r"([?&#]([\w.-]+)=)[^&#\s\"'<>]+"

_PROOF_START: Final = "eyJ0eXAiOiJkcG9wK2p3dC"  # {"typ":"dpop+jwt" in Base64
PROOF: Final = rf"{_PROOF_START}[\w-]*\.[\w-]+\.[\w-]+"
"""The pattern of a DPoP proof, which a server may repeat in any text."""

_OAUTH_MEMBER: Final = "|".join(name.replace("_", "_?") for name in sorted(OAUTH_SECRETS))
# Texts: the module `re` compiles them when they are first needed, which is after the first frame.
_CREDENTIALS: Final = (
    r"(\b(?:Bearer|Basic|DPoP)\s+)[\w.~+/=-]{8,}",
    rf"""(?i)((?:\\?["'])(?:{_OAUTH_MEMBER}|authorization|mcp-session-id)\\?["']\s*:\s*\\?["'])"""
    r"""(?:[\w-]+[ ])?[^"'\\\s]{3,}""",
    rf"(?i)([?&#](?:{'|'.join(sorted(OAUTH_SECRETS))}|code|session_?id)=)[^&#\s\"'<>\\]{{8,}}",
    rf"(?im)^((?:{'|'.join(sorted(SECRET_HEADERS))}):[ \t]*).+$",
    r"""((?:\\?["'])d\\?["']\s*:\s*\\?["'])[\w-]{40,}""",  # of a private key as a JWK, which names its kind as kty
    rf"(){PROOF}",
)
_CREDENTIAL_WORDS: Final = (
    *sorted({name.rpartition("_")[2] for name in OAUTH_SECRETS}),
    "authorization", "basic", "bearer", "code=", "cookie", "dpop", "kty", "session", _PROOF_START.lower(),
)  # fmt: skip
"""Each credential comes with one of these, in upper or lower case: to search for them takes a tenth of the time."""

_TOKENS: Final = r"""(?xs)
      -----BEGIN[ ][A-Z0-9 ]{0,32}PRIVATE[ ]KEY-----.+
    | (?<![A-Za-z0-9])(?:
        eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                       # a JSON Web Token
      | sk-[\w-]{16,} | [sr]k_(?:live|test)_\w{16,} | whsec_\w{16,}
      | gh[opsur]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
      | xox[abeprs]-[\w-]{10,} | xapp-[\w-]{16,}
      | A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Z]) | AIza[\w-]{30,} | GOCSPX-[\w-]{16,} | ya29\.[\w-]{16,}
      | hf_\w{20,} | npm_\w{30,} | pypi-[\w-]{40,} | dop_v1_\w{32,} | shp(?:at|ss)_\w{24,}
      | SG\.[\w-]{16,}\.[\w-]{16,} | (?:ntn|secret|lin_api|sbp|tvly-dev|fc)[_-][A-Za-z0-9]{20,}
      )
    """
"""Tokens that well-known services issue, by how they begin, and private keys in PEM."""

_RANDOM: Final = r"(?<![\w@:+/~.-])[A-Za-z0-9_+/~-]{20,}={0,2}(?![\w.@/+~-])"
_PUBLIC: Final = r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64}"
"""UUIDs, and hashes of commits and images, which name something that anybody may see."""

RANDOM_BITS: Final = 3.5
"""Bits of entropy for each character from which a long word with letters and digits is taken for a random one."""

_SEPARATORS: Final = r"""[\s"'{}\[\],;]+"""
_ADDRESS: Final = r"(?i)[a-z][a-z0-9+.-]*://(?:[^/?#@]*?:(?P<password>[^/?#@]*)@)?(?P<rest>.*)"
_PARAMETER: Final = r"[?&]([^=&#]+)=([^&#]+)"
_NAMED: Final = r"(?:^|(?<==))([\w.-]+)=(?=(\S+))|(?<=,)([\w.-]+)=(?=([^\s,]+))"
_NAMED_HEADER: Final = r"(?:.*=)?([\w-]+):(\s*)(\S.*)"
_PATH: Final = r"~|\.{0,2}/"
_HOST: Final = r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::[0-9]+)?"
_WORDS: Final = r"(?i)(?:[^a-z0-9]*(?:[a-z]+|[0-9]{1,4})(?![a-z0-9]))+[^a-z0-9]*"
"""Words and small numbers: en_US.UTF-8, eu-central-1, 2025-11-25."""
MIN_DOUBTFUL: Final = 8
"""Characters of the shortest word that `mask_doubtful` masks by its shape."""

_NAMED_VALUE: Final = (
    r"""((?<![\w.-])([\w.-]{1,60})["']?\s?(?:=|:(?!\s?["']?[A-Za-z_]+(?![\w-])))\s*["']?)[^\s"'<>&,;]{3,}"""
)
"""A name and its value; a single word after a colon goes on with the sentence: "invalid token: expired"."""
_DOUBTFUL_WORD: Final = r"""[^\s"'`<>{}\[\](),;&=?#|/]+"""
_PLAIN_WITH_NUMBER: Final = r"[A-Za-z]+[-_ ]?[0-9]{1,9}(?:\.[0-9]+)*[.:]?$|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z?)?$"
"""OAuth2.0, AADSTS700016, client-12345, 2026-07-28T10:00:00Z."""
_PIECE: Final = r"(?i)[a-z0-9]{20}"
_MIXED: Final = r"(?i)(?=.*[a-z])(?=.*[0-9])"


def looks_secret(name: str) -> bool:
    """True if a variable, header, option or field of this name probably holds a secret."""
    return _SECRET_NAME.search(name) is not None


def is_secret_header(name: str) -> bool:
    """True if the value of this HTTP header must be masked."""
    if name.lower() in SECRET_HEADERS:
        return True
    return name.lower() not in _OPEN_HEADERS and (looks_secret(name) or re.search(_SECRET_HEADER, name) is not None)


def safe_url(text: str) -> str:
    """A URL without user name and password, the values of secret parameters masked. Other text is left unchanged."""
    return re.sub(_URL_PARAMETER, _masked_parameter, re.sub(_USER, "", text))


def mask_credentials(text: str) -> str:
    """Mask what the syntax around it marks as a credential: in JSON, in URLs and in HTTP headers."""
    if text.isascii():  # in other texts some letters count as those of ASCII
        folded = text.lower()
        if not any(word in folded for word in _CREDENTIAL_WORDS):
            return text
    for credential in _CREDENTIALS:
        text = re.sub(credential, rf"\g<1>{MASK}", text)
    return text


def mask_doubtful(text: str) -> str:
    """Mask what is a secret by its syntax, its name or its shape, for words of a party that handles secrets just then.

    Stricter than `secrets_in`: any word of letters and digits that is not a host, a date, or a name with a number.
    """
    return re.sub(_DOUBTFUL_WORD, _masked_doubtful, re.sub(_NAMED_VALUE, _masked_named, mask_credentials(text)))


def secrets_in(value: str) -> Iterator[str]:
    """The parts of a value that are secrets by their shape, for a value whose name does not tell.

    Skips ``true``, ``8080``, paths, hosts, dates and plain words, which occur in any text.
    """
    for word in re.split(_SEPARATORS, value):
        name, _, named = word.partition("=")
        address = re.fullmatch(_ADDRESS, word)
        if address is not None:
            yield address["password"] or ""
            yield from secret_parameters(word)
            yield from (unquote(part) for part in re.split(r"[/?#&=@:]", address["rest"]) if _is_secret_shape(part))
        elif named.strip("=") and looks_secret(name):
            yield named
        elif _is_secret_shape(word):
            yield word


def named_secrets(argument: str) -> Iterator[str]:
    """The values in an argument of a command line that follow the name of a secret.

    As in ``API_TOKEN=x``, ``--env=API_TOKEN=x,MODE=y`` and ``Authorization: Bearer x``. What looks like a header
    without a blank, such as ``auth:latest``, is one only by a well-known name.
    """
    for match in re.finditer(_NAMED, argument):
        if looks_secret(match[1] or match[3]):
            yield match[2] or match[4]
    header = re.fullmatch(_NAMED_HEADER, argument, re.DOTALL)
    if header and looks_secret(header[1]) and (header[2] or header[1].lower() in SECRET_HEADERS):
        yield header[3]


def command_secrets(words: Sequence[str]) -> Iterator[str]:
    """The values in a command line that look secret, as in ``--token x`` and ``--token=x``."""
    previous = ""
    for word in words:
        option, equals, value = word.partition("=")
        if equals and option.startswith("-") and looks_secret(option):
            yield value
        elif previous.startswith("-") and looks_secret(previous):
            yield word
        yield from named_secrets(word)
        yield from secret_parameters(word)
        previous = "" if equals else word


def safe_command(line: str) -> str:
    """A command line in the quotes of a shell, which may be cut, with the values masked that look secret.

    Its URLs are as `safe_url` leaves them.
    """
    import shlex  # late: few lines are shown

    try:
        words = shlex.split(line)
    except ValueError:  # the quote that closes it was cut off
        words = line.split()
        for quote in ("'", '"'):
            with suppress(ValueError):
                words = shlex.split(line + quote)
                break
    secrets = {secret for secret in command_secrets(words) if len(secret) >= MIN_SECRET}
    for secret in sorted(secrets, key=len, reverse=True):
        for written in (secret, secret.replace("'", "'\"'\"'")):
            line = line.replace(written, MASK)
    return safe_url(line)


def token_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where ``text`` holds a token of a well-known service, or a private key: starts and ends."""
    return (match.span() for match in re.finditer(_TOKENS, text))


def random_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where ``text`` holds words that look random: starts and ends. No paths, plain words, UUIDs and hashes."""
    for match in re.finditer(_RANDOM, text):
        word = match[0]
        plain = re.match(_PATH, word) or re.fullmatch(_WORDS, word) or re.fullmatch(_PUBLIC, word)
        if not plain and re.match(_MIXED, word) and entropy(word) >= RANDOM_BITS:
            yield match.span()


def entropy(text: str) -> float:
    """Bits for each character, by how often each occurs in ``text``."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def secret_parameters(url: str) -> Iterator[str]:
    """The values of a URL's parameters whose names look secret."""
    return (value for name, value in re.findall(_PARAMETER, url) if looks_secret(name))


def _masked_parameter(parameter: re.Match[str]) -> str:
    secret = looks_secret(parameter[2]) or re.search(_SECRET_PARAMETER, parameter[2])
    return f"{parameter[1]}{MASK}" if secret else parameter[0]


def _masked_named(named: re.Match[str]) -> str:
    return f"{named[1]}{MASK}" if looks_secret(named[2]) or re.search(_SECRET_PARAMETER, named[2]) else named[0]


def _masked_doubtful(word: re.Match[str]) -> str:
    found = word[0]
    mixed = len(found) >= MIN_DOUBTFUL and re.match(_MIXED, found) is not None
    if re.fullmatch(_HOST, found.rstrip(".:")) or re.match(_PLAIN_WITH_NUMBER, found):
        return found
    return MASK if mixed or re.search(_PIECE, found) else found


def _is_secret_shape(word: str) -> bool:
    if len(word) < MIN_SECRET_SHAPE or re.match(_PATH, word) or re.fullmatch(_HOST, word):
        return False
    return re.search(_PIECE, word) is not None or (
        re.match(_MIXED, word) is not None and not re.fullmatch(_WORDS, word)
    )


def redacted(text: str, mask: Mask) -> str:
    """``text`` with known secrets and credentials masked, also those with JSON escapes in them. JSON stays JSON."""
    plain = _redacted_text(text, mask)
    return plain if "\\" not in plain else _redacted_json(plain, mask)


def masked_value(value: Any, mask: Mask) -> Any:
    """A JSON value with ``mask`` applied to its strings and names."""
    if type(value) is str:
        return mask(value)
    if type(value) is list:
        return [masked_value(item, mask) for item in value]
    if type(value) is dict:
        return {mask(key): masked_value(item, mask) for key, item in value.items()}
    return value


PIECE: Final = 256 << 10
"""Characters that are searched for credentials at once: that holds up all other threads."""

_CUT: Final = r"""",|[,;.][ ](?=\w)"""
"""The end of a string in JSON, or of a clause, over which no credential goes on."""


def _pieces(text: str) -> Iterator[str]:
    """A large text of one line in pieces."""
    start = 0
    if len(text) > PIECE and "\n" not in text:
        cut = re.compile(_CUT)
        while (end := cut.search(text, start + PIECE)) is not None:
            yield text[start : end.end()]
            start = end.end()
    yield text[start:]


def _redacted_text(text: str, mask: Mask) -> str:
    return "".join(map(mask_credentials, _pieces(mask(text))))


def _redacted_json(text: str, mask: Mask) -> str:
    """Mask the decoded strings: an escape may stand in the middle of a secret."""
    try:
        value = json.loads(text)
        hidden = masked_value(value, lambda part: _redacted_text(part, mask))
    except (ValueError, RecursionError):
        return text
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))


def fits_masked(masked: str, text: str) -> bool:
    """True if ``text`` is the masked one with anything in place of its masks."""
    first, *rest = masked.split(MASK)
    if not rest or not text.startswith(first) or not text.endswith(rest[-1]):
        return not rest and masked == text
    place, end = len(first), len(text) - len(rest[-1])
    for piece in rest[:-1]:
        if (found := text.find(piece, place, max(place, end))) < 0:
            return False
        place = found + len(piece)
    return place <= end
