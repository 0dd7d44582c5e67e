"""Recognizes what makes a server dangerous to start, for the sentences of its consent screen.

This warns and decides nothing: a command that no pattern knows may do as much harm.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.config import references_within
from mcphost.imports.commands import POWERSHELLS, SHELLS, program_name, programs_in, script_in
from mcphost.imports.downloads import docker_words
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show_line
from mcphost.protocol.host_names import warnings_of
from mcphost.protocol.urls import is_loopback
from mcphost.redaction import safe_url

MAX_TEXT: Final = 200_000
"""Characters of an entry's texts that are searched; a longer entry is a danger sign itself."""

LONGEST: Final = 120
"""Characters of the words that a sign points at; the screen shows the whole command beside it."""

MAX_ADDRESSES: Final = 8
"""Addresses of one text that are looked at."""


@dataclass(frozen=True, slots=True)
class DangerSign:
    """What is dangerous, and the words of the entry that show it. Both are safe to show."""

    sentence: str
    """Without a full stop, such as ``It runs as administrator``."""
    words: str

    @property
    def text(self) -> str:
        return f"{self.sentence}: {self.words}" if self.words else f"{self.sentence}."


_LOADS: Final = "It loads something from the network"
_RUNS_LOADED: Final = "It runs what it downloads, whatever that is"
_USES: Final = "It uses a folder that every user can write to"
_RUNS_FROM: Final = "It runs a program from a folder that every user can write to"

_ADMINISTRATORS: Final = frozenset({"sudo", "doas", "pkexec", "su", "runas", "gsudo", "sudoedit"})
_FETCHERS: Final = frozenset({
    "curl", "wget", "fetch", "aria2c", "iwr", "irm", "invoke-webrequest", "invoke-restmethod", "bitsadmin", "certutil",
})  # fmt: skip
_CODE_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "python": frozenset({"-c"}),
    "node": frozenset({"-e", "--eval", "-p", "--print"}),
    "bun": frozenset({"-e", "--eval"}),
    "deno": frozenset({"eval"}),
    "perl": frozenset({"-e", "-E"}),
    "ruby": frozenset({"-e"}),
    "php": frozenset({"-r"}),
    "osascript": frozenset({"-e"}),
    "mshta": frozenset(),
}
_CODE_VARIABLES: Final = frozenset({
    "BASH_ENV", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "ENV", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS",
    "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "PROMPT_COMMAND",
    "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT", "ZDOTDIR", "_JAVA_OPTIONS", "PATH",
})  # fmt: skip
_ROUTE_VARIABLES: Final = frozenset({
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
})  # fmt: skip
_DOCKER_RIGHTS: Final = frozenset({"--privileged", "--cap-add", "--device", "--security-opt"})
_DOCKER_SHARED: Final = frozenset({"--network", "--net", "--pid", "--ipc", "--uts", "--userns", "--cgroupns"})
_DOCKER_FOLDERS: Final = frozenset({"-v", "--volume", "--mount"})

_START: Final = r"(?:^|(?<=[\s;&|(`'\"]))"
"""Where a word starts: ``mcp-crontab`` is not ``crontab``."""

_DELETES: Final = re.compile(
    rf"{_START}(?:rm\s+-\w*[rRf]\w*|rm\s+--(?:recursive|force)|remove-item\b|(?:del|rd|rmdir)\s+/[sq]\b|mkfs\b|"
    r"shred\s|of=/dev/|-delete\b|git\s+clean\b)",
    re.IGNORECASE,
)
_ENCODED: Final = re.compile(
    rf"{_START}(?:base64\s+(?:-d|-D|--decode)|eval\s|iex\s|invoke-expression\b|xxd\s+-r|openssl\s+enc\b)|"
    r"\bfrombase64string\b|\batob\(|\beval\(|\\x[0-9a-f]{2}\\x[0-9a-f]{2}",
    re.IGNORECASE,
)
_ENCODED_OPTION: Final = re.compile(r"[-/]e(?:c|nc\w*)?", re.IGNORECASE)
_STARTUP: Final = re.compile(
    r"\.bash(?:rc|_profile|_login|_logout)|/\.profile|\.z(?:shrc|profile|shenv|login)|\.xprofile|\.xinitrc|"
    r"fish/config\.fish|config/autostart|launch(?:agents|daemons)|/etc/(?:profile|cron|rc\.|init|systemd|ld\.so)|"
    r"systemd/user|authorized_keys|\.ssh/(?:config|rc)|\.git/hooks|\.gitconfig|programs.startup|currentversion.run\b|"
    rf"{_START}(?:crontab|schtasks|launchctl|systemctl)(?=\s|$)",
    re.IGNORECASE,
)
_KEYS: Final = re.compile(
    r"(?:\.ssh|\.gnupg|\.aws|\.kube|\.docker/config\.json|\.netrc|\.npmrc|\.pypirc|/etc/shadow|"
    r"\.mozilla|google-chrome|library/keychains|\.password-store)(?![\w-])",
    re.IGNORECASE,
)
_RAW: Final = re.compile(rf"/dev/(?:tcp|udp)/|{_START}(?:nc|ncat|netcat|socat)\s+-", re.IGNORECASE)
_ADMINISTRATOR: Final = re.compile(rf"{_START}(?:sudo|doas|pkexec|runas)(?=\s+\S)")
_SHARED_FOLDER: Final = re.compile(r"(?:^|[\s'\"=:])((?:/private)?(?:/tmp|/var/tmp|/dev/shm)(?![\w.-])[^\s'\"]*)")
_PLAIN_HTTP: Final = re.compile(r"http://[^\s'\"<>]+", re.IGNORECASE)
_EVERYTHING: Final = frozenset({"/", "~", "~/", "$HOME", "${HOME}", "${HOME}/", "C:\\", "C:/", "%USERPROFILE%"})
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4}){10,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_PIPE_TARGETS: Final = SHELLS | POWERSHELLS | {"python", "node", "perl", "ruby", "iex", "invoke-expression", "php"}
_SUBSTITUTION: Final = re.compile(r"(?:<\(|\$\(|`)\s*([\w-]+)")


def danger_signs(table: Mapping[str, Any]) -> tuple[DangerSign, ...]:
    """The signs of danger in a ``[servers.NAME]`` table that was not validated yet, the worst first, each once."""
    words = command_words(table)
    env, headers = texts_by_name(table, "env"), texts_by_name(table, "http_headers")
    url, folder = _text(table.get("url")), _text(table.get("cwd"))
    joined = " ".join(words)
    found = [*_of_references(table)]
    found += [sign for program in programs_in(words) for sign in _of_program(program)]
    found += _in_text(joined[:MAX_TEXT])
    found += _of_addresses_in(joined[:MAX_TEXT])
    found += _in_words(words)
    found += _of_variables(env)
    found += _of_address(url)
    named = [("the command" if number == 0 else f"argument {number}", word) for number, word in enumerate(words)]
    named += [(show_line(name, LONGEST), name + value) for name, value in (*env.items(), *headers.items())]
    named += [("its address", url), ("its folder", folder)]
    found += _of_letters(named, words)
    if len(joined) > MAX_TEXT:
        found.append(DangerSign("It is too long to be searched for danger to its end", f"{len(joined):,} characters"))
    return tuple(sign for sign in dict.fromkeys(found) if not _is_said(sign, found))


def _is_said(sign: DangerSign, signs: Sequence[DangerSign]) -> bool:
    """Does a worse sign say the same?"""
    worse = {_USES: _RUNS_FROM, _LOADS: _RUNS_LOADED}.get(sign.sentence)
    same = (other for other in signs if other.sentence == worse)
    return any(sign.sentence == _LOADS or other.words == sign.words for other in same)


def command_words(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The program and its arguments; what is no text there is left to the configuration's own check."""
    args = table.get("args")
    listed = args if isinstance(args, list | tuple) else ()
    words = (table.get("command"), *listed)
    return tuple(word for word in words if isinstance(word, str))


def texts_by_name(table: Mapping[str, Any], key: str) -> dict[str, str]:
    """A table of texts inside ``table``; what is no text there is left out."""
    inner = table.get(key)
    pairs = inner.items() if isinstance(inner, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _sign(sentence: str, *words: str) -> DangerSign:
    return DangerSign(sentence, show_line(safe_url(" ".join(words)), LONGEST))


def _of_program(words: tuple[str, ...]) -> Iterator[DangerSign]:
    name, rest = program_name(words[0]), words[1:]
    if name in _ADMINISTRATORS:
        yield _sign("It runs as administrator", words[0])
    if name in POWERSHELLS and (option := _encoded_option(rest)):
        yield _sign("It hides what it runs, in encoded text", name, option)
    script = script_in(words)
    if script is not None:
        option = next(word for word in rest if len(word) > 1 and word[0] in "-/")
        yield _sign("It runs a shell, which does whatever the text after it says", words[0], option)
        yield from _piped(script)
    code = re.sub(r"[\d.]+$", "", name)
    if (options := _CODE_OPTIONS.get(code)) is not None and (named := [word for word in rest[:8] if word in options]):
        yield _sign("It runs code that is written in the command itself", words[0], named[0])
    if name in _FETCHERS:
        yield _sign(_LOADS, words[0], *rest[-1:])
    yield from _of_container(words)
    if _SHARED_FOLDER.match(words[0]):
        yield _sign(_RUNS_FROM, words[0])


def _encoded_option(words: Sequence[str]) -> str:
    return next((word for word in words if _ENCODED_OPTION.fullmatch(word)), "")


def _piped(script: str) -> Iterator[DangerSign]:
    """What is downloaded and run at once: ``curl … | sh``, ``sh <(curl …)``."""
    fetching = ""
    for part in script[:MAX_TEXT].split("|"):
        names = [program_name(word) for word in part.replace("(", " ").replace(";", " ").split()]
        target = next((re.sub(r"[\d.]+$", "", name) for name in names if name not in _ADMINISTRATORS | {"env"}), "")
        if fetching and target in _PIPE_TARGETS:
            yield _sign(_RUNS_LOADED, f"{fetching} … | {target}")
        fetching = next((name for name in names if name in _FETCHERS), fetching)
    for match in _SUBSTITUTION.finditer(script[:MAX_TEXT]):
        if match[1].lower() in _FETCHERS:
            yield _sign(_RUNS_LOADED, f"{match[0]} …)")


def _of_container(words: tuple[str, ...]) -> Iterator[DangerSign]:
    found = docker_words(words)
    for name, value in found[0] if found else ():
        if name in _DOCKER_RIGHTS and not value.startswith("no-new-privileges"):
            yield _sign("Its container gets more rights on this machine", name, value)
        if name in _DOCKER_SHARED and value.partition(":")[0] == "host":
            what = "network" if name in ("--network", "--net") else name.strip("-")
            yield _sign(f"Its container is not kept apart from this machine ({what})", name, value)
        if name in _DOCKER_FOLDERS:
            yield from _of_mount(name, value)


def _of_mount(name: str, value: str) -> Iterator[DangerSign]:
    source = value.partition(":")[0]
    if name == "--mount":
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        source = parts.get("source") or parts.get("src") or ""
    if source.endswith(("docker.sock", "podman.sock", "containerd.sock")):
        yield _sign("Its container can start others with all rights, and so owns this machine", name, value)
    elif source in _EVERYTHING or source in ("/etc", "/home", "/root", "/var", "/Users"):
        yield _sign("Its container can use files far beyond one project", name, value)


def _in_text(text: str) -> Iterator[DangerSign]:
    for pattern, sentence in (
        (_ADMINISTRATOR, "It runs as administrator"),
        (_DELETES, "It deletes files"),
        (_ENCODED, "It hides what it runs, in encoded or composed text"),
        (_STARTUP, "It names what runs at login or by itself"),
        (_KEYS, "It names a place with keys or passwords"),
        (_RAW, "It opens a raw connection"),
    ):
        if match := pattern.search(text):
            yield _sign(sentence, _whole_word(text, match))


def _whole_word(text: str, match: re.Match[str]) -> str:
    """What matched, with the rest of the word or path that it is in."""
    before = re.split(r"[\s'\"=:;|&<>(`]", text[max(0, match.start() - LONGEST) : match.start()])[-1]
    after = re.split(r"[\s'\";|&<>)`]", text[match.end() : match.end() + LONGEST], maxsplit=1)[0]
    return f"{before}{match[0]}{after}".strip()


def _of_addresses_in(text: str) -> Iterator[DangerSign]:
    for match in islice(_PLAIN_HTTP.finditer(text), MAX_ADDRESSES):
        if _is_plain(match[0]):
            yield _sign(
                "It uses an address without encryption: anybody on the way reads and changes it", _host(match[0])
            )


def _in_words(words: Sequence[str]) -> Iterator[DangerSign]:
    for number, word in enumerate(words[1:], 1):
        value = word.partition("=")[2] if word.startswith("-") else word
        if value in _EVERYTHING:
            yield _sign("It is given everything: the whole disk or home folder", word)
        elif match := _SHARED_FOLDER.search(word):
            yield _sign(_USES, match[1])
        if any(map(_hides_text, _BASE64.findall(word[:MAX_TEXT]))):
            yield DangerSign("It hides text in base64", f"argument {number}")  # the text itself may be a secret


def _hides_text(encoded: str) -> bool:
    """Does it decode to text? A key decodes to bytes of all kinds."""
    try:
        plain = base64.b64decode(encoded, validate=True).replace(b"\0", b"")
    except (binascii.Error, ValueError):
        return False
    return plain.isascii() and plain.decode("ascii").replace("\n", " ").replace("\t", " ").isprintable()


def _of_variables(env: Mapping[str, str]) -> Iterator[DangerSign]:
    for name, value in env.items():
        if name.upper() in _CODE_VARIABLES:
            yield _sign("A variable changes which code its programs load", name)
        elif name.upper() in _ROUTE_VARIABLES:
            yield _sign("A variable changes where its connections go, or whom they trust", name)
        yield from _of_addresses_in(value[:MAX_TEXT])
        if value in _EVERYTHING - {"~", "${HOME}"}:
            yield _sign("It is given everything: the whole disk or home folder", f"{name}={value}")


def _of_references(table: Mapping[str, Any]) -> Iterator[DangerSign]:
    """What of the user's own it would be given: an item of the keychain, or what a file holds."""
    for _, reference in references_within(table):
        if reference.kind == "keyring":
            yield _sign("It is given a secret that is in your keychain already", reference.name)
        elif reference.kind == "file":
            yield _sign("It is given what a file of yours holds", reference.name)


def _of_address(url: str) -> Iterator[DangerSign]:
    if _is_plain(url):
        yield _sign("Its address is not encrypted: anybody on the way can read and change what is sent", _host(url))
    for warning in warnings_of([url] if url else []):
        yield DangerSign("Its address may be a forgery", warning)


def _is_plain(url: str) -> bool:
    return url.lower().startswith("http://") and not is_loopback(_host(url))


def _host(url: str) -> str:
    """The host alone: anything after it may be a secret."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _of_letters(named: Iterable[tuple[str, str]], words: Sequence[str]) -> Iterator[DangerSign]:
    for name, text in named:
        if hidden_count(text) or _CONTROL.search(text):
            yield DangerSign("It holds characters that cannot be seen; marks such as ⟨U+200B⟩ stand for them", name)
    for word in words:
        if not word.isascii() and (odd := _odd_word(word, strict=word is words[0])):
            yield DangerSign("It holds letters that only look like others", show_line(odd, LONGEST))


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_DOUBLES: Final = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL"})
"""Scripts with letters that look like Latin ones."""


def _odd_word(text: str, *, strict: bool) -> str:
    """The first word that mixes Latin letters with ones that look the same, each with its script; ``strict``: any
    such letter.
    """
    for match in _LETTERS.finditer(text[:MAX_TEXT]):
        scripts = {letter: unicodedata.name(letter, "?").partition(" ")[0] for letter in dict.fromkeys(match[0])}
        odd = [letter for letter, script in scripts.items() if script in _DOUBLES]
        if odd and (strict or "LATIN" in scripts.values()):
            named = ", ".join(f"{letter} is {scripts[letter].capitalize()}" for letter in odd[:4])
            return f"{match[0]} ({named})"
    return ""
