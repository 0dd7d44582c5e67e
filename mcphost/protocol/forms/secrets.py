"""Recognizes form fields and messages that ask for secrets, which servers may not do, even in disguise.

These are rules for prose; `mcphost.redaction` has those for identifiers. A match only marks the field and asks again,
so the rules err on the side of marking.
"""

from __future__ import annotations

import re
import unicodedata

MESSAGE_CHARACTERS = 20_000
"""Characters of a message that are examined."""

_WORDS = frozenset(
    {"apikey", "auth", "authorization", "bearer", "card", "cookie", "credential", "credentials", "creds", "cvc", "cvv"}
    | {"jwt", "mfa", "mnemonic", "otp", "passcode", "passphrase", "passwd", "password", "pin", "privatekey", "pwd"}
    | {"secret", "secrets", "ssn", "token", "totp", "2fa"}
)
_HARMLESS_TOKENS = r"\b(page|next|continuation|sync|cursor|max|start|end) token\b"
_PHRASES = (
    r"pass ?(word|phrase|code|wd)|(api|access|private|secret|ssh|signing|encryption|recovery|license) ?keys?\b"
    r"|(access|auth|bearer|refresh|session) ?token|(credit|debit|bank) ?card|card number|credentials?\b|\bcvv\b"
    r"|(seed|recovery) phrase|one ?time (code|pass)|client ?secret|authenticator|(recovery|backup) codes?\b"
    r"|(security|verification|confirmation|authentication|login|sms|mfa|2fa|\bdigit) code"
    r"|code (from|in|on|sent to|texted to) your (app|bank|e ?mail|mail|phone|sms|text|token)"
    r"|\bid (rsa|dsa|ecdsa|ed25519)\b|\bnetrc\b|\bkeychain\b"
)
_WORD = r"[\w$@!]+"
_SPACED = r"(?<=\b\w) (?=\w\b)"
_UNSEEN = ("Cf", "Cc", "Mn")
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"
_LOOKALIKES = str.maketrans("013457$@!аесорхуіѕкοαεν", "oieasts" + "ai" + "aecopxyiskoaev")


def looks_secret(name: str, title: str = "", description: str = "") -> bool:
    for text in (name, title):
        words = re.sub(_HARMLESS_TOKENS, "", _plain(text))
        if any(_asks(spelling) for spelling in (words, words.translate(_LOOKALIKES), re.sub(_SPACED, "", words))):
            return True
    return re.search(_PHRASES, _plain(description)) is not None


def asks_for_secret(message: str) -> bool:
    """True if the message of a form asks for a secret, whatever its fields say."""
    plain = _plain(message, MESSAGE_CHARACTERS)
    return any(re.search(_PHRASES, words) is not None for words in (plain, plain.translate(_LOOKALIKES)))


def _asks(words: str) -> bool:
    return re.search(_PHRASES, words) is not None or not _WORDS.isdisjoint(words.split())


def _plain(text: str, limit: int = 2000) -> str:
    """Lower case words, one space apart, without accents, full-width forms and invisible characters."""
    normal = unicodedata.normalize("NFKD", text[:limit])
    visible = "".join(character for character in normal if unicodedata.category(character) not in _UNSEEN)
    return " ".join(re.findall(_WORD, re.sub(_CAMEL, " ", visible).lower().replace("_", " ")))
