"""Resolves ``${…}`` references, and remembers which values are secret so that they can be masked.

One `Values` serves a whole run: its memory of secrets keeps them off screens and out of logs.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from mcphost.config.files import read_regular
from mcphost.config.references import MalformedReferenceError, Reference, parse
from mcphost.errors import ConfigError, UnresolvedReference
from mcphost.places import working_folder
from mcphost.redaction import MASK, MIN_SECRET, PROOF, looks_secret, secrets_in

KEYRING_SERVICE = "mcphost"
"""The service in the keychain that ``${keyring:NAME}`` reads."""

MIN_SECRET_LINE = 16
"""Characters of a line of a multi-line secret that is masked by itself; shorter ones are braces and commas."""

MAX_SECRET_FILE = 64 * 1024
"""Bytes of a ``${file:…}``: it holds a key or a token, not a document."""


class _Secrets:
    """The remembered secrets, and the pattern that finds them; None without secrets."""

    def __init__(self) -> None:
        self.pattern: re.Pattern[str] | None = None
        self._forms: set[str] = set()
        self._lock = threading.Lock()

    def add(self, forms: Iterable[str]) -> None:
        with self._lock:
            self._forms.update(forms)
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            known = [*map(re.escape, longest_first), PROOF]  # each request has another proof
            self.pattern = re.compile("|".join(known)) if longest_first else None


class Values:
    """Resolves references and remembers secrets. Safe to use from several threads.

    ``env`` is mcphost's own environment; ``keyring`` returns the secret of a name or None, and may block, so resolve
    in a thread; ``base`` is the folder of relative paths.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        keyring: Callable[[str], str | None] | None = None,
        base: Path | None = None,
    ) -> None:
        self._env, self._keyring = env, keyring
        self._base = base or working_folder()
        self._secrets = _Secrets()

    def beside(self, file: Path | None) -> Values:
        """The same values with relative paths starting at the folder of ``file``; None: where they start now."""
        if file is None:
            return self
        values = Values(self._env, self._keyring, file.absolute().parent)
        values._secrets = self._secrets
        return values

    def without_keychain(self) -> Values:
        """The same values, except that references to the keychain have none."""
        values = Values(self._env, None, self._base)
        values._secrets = self._secrets
        return values

    def resolve(self, text: str, field: str, *, secret: bool = False) -> str:
        """Return ``text`` with its references replaced.

        ``field`` is its dotted key (``servers.db.env.TOKEN``). With ``secret``, or if the name of the field looks
        secret, the result is remembered as a secret; parts of resolved values also if they have the shape of one.
        Raises UnresolvedReference for an unset reference without default.
        """
        try:
            pieces = parse(text)
        except MalformedReferenceError as error:
            raise UnresolvedReference(field, "a ${…}", f"cannot be read: {error}") from None
        secret = secret or looks_secret(field.rpartition(".")[2])
        result = "".join(piece if isinstance(piece, str) else self._looked_up(piece, field, secret) for piece in pieces)
        if secret:
            self.remember(result)
        return result

    def variable(self, name: str, field: str, *, secret: bool = False) -> str:
        """Return the environment variable that ``field`` names. Raises UnresolvedReference."""
        return self._looked_up(Reference("env", name, None, name), field, secret)

    def passed_on(self, name: str) -> str | None:
        """Return an environment variable for a child, None if it is unset."""
        value = self._env.get(name)
        if value:
            self._learn(value, secret=looks_secret(name))
        return value

    def path(self, text: str, field: str) -> Path:
        """Return the resolved ``text`` as an absolute path; ``~`` is the home folder."""
        return self._absolute(self.resolve(text, field))

    def remember(self, secret: str) -> None:
        """Mask ``secret`` from now on, also as escaped in JSON and URLs."""
        words = secret.split()
        # "Bearer abc": the token also occurs without its scheme.
        forms = {secret, secret.strip(), *(words[1:] if len(words) == 2 else ())}
        # A log shows a multi-line key line by line.
        forms |= {line.strip() for line in secret.splitlines() if len(line) >= MIN_SECRET_LINE}
        # A variable may hold invalid UTF-8.
        urls = {quote(form, safe="", errors="surrogateescape") for form in forms}
        forms |= {json.dumps(form)[1:-1] for form in forms} | urls
        self._secrets.add(form for form in forms if len(form) >= MIN_SECRET)

    def mask(self, text: str) -> str:
        """Return ``text`` with each remembered secret replaced by ``MASK``."""
        pattern = self._secrets.pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def _looked_up(self, reference: Reference, field: str, secret: bool) -> str:
        value, advice = self._found(reference, field)
        value = value or reference.default
        if value is None:
            raise UnresolvedReference(field, reference.text, advice)
        self._learn(value, secret=secret or reference.kind != "env" or looks_secret(reference.name))
        return value

    def _learn(self, value: str, *, secret: bool) -> None:
        """Mask the value from now on if it is ``secret``, else its parts that have the shape of a secret."""
        for each in (value,) if secret else secrets_in(value):
            self.remember(each)

    def _found(self, reference: Reference, field: str) -> tuple[str | None, str]:
        """Return the value, or None and advice."""
        name = reference.name
        if reference.kind == "env":
            return self._env.get(name), f"is not set; set the environment variable {name} before starting mcphost"
        if reference.kind == "file":
            return self._file(reference, field), f"is empty; write the value into {name}"
        if self._keyring is None:
            return None, "needs a keychain, which this machine lacks; use an environment variable or a file"
        return self._keyring(name), f"is not in the keychain; to store it there: mcphost secret set {name}"

    def _file(self, reference: Reference, field: str) -> str:
        path = self._absolute(reference.name)
        try:
            return read_regular(path, MAX_SECRET_FILE).decode().rstrip("\r\n")
        except FileNotFoundError:
            reason = f"is not there; create {path}"
        except UnicodeDecodeError:
            reason = f"is not UTF-8 text; look into {path}"
        except ConfigError as error:
            reason = f"cannot be used: {error}"
        raise UnresolvedReference(field, reference.text, reason)

    def _absolute(self, text: str) -> Path:
        return self._base / os.path.expanduser(text)  # unlike pathlib's, it leaves an unknown ~user unchanged
