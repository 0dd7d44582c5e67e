"""Recognizes what makes a server dangerous to start, for the sentences of its consent screen.

This warns and decides nothing: a command that no pattern knows may do as much harm.
"""

from __future__ import annotations

import base64
import binascii
import csv
import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.config import references_within
from mcphost.imports.commands import (
    MAX_SCRIPT,
    MAX_WORDS,
    Script,
    ScriptSyntax,
    commands_of,
    family_of,
    is_encoded_option,
    program_name,
    programs_in,
    read_options,
    scripts_in,
    substitutions_in,
    variables_in,
)
from mcphost.imports.downloads import container_start, downloads_of
from mcphost.imports.launchers import INTERPRETERS, POWERSHELLS, SHELLS
from mcphost.json_values import as_text, texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show_line
from mcphost.protocol.host_names import warnings_of
from mcphost.protocol.urls import is_loopback
from mcphost.redaction import safe_url

MAX_TEXT: Final = 200_000
"""Characters of an entry's texts that are searched; a longer entry is a danger sign itself."""

LONGEST: Final = 120
"""Characters of the words that a sign points at; the screen shows the whole command beside it."""

MAX_PATH: Final = 4096
"""Characters of a path that are examined; longer ones do not exist."""

MAX_COMMANDS: Final = 500
"""Commands of one script that are examined together."""

MAX_ADDRESSES: Final = 8
"""Addresses of one text that are looked at."""


@dataclass(frozen=True, slots=True)
class DangerSign:
    """A danger, and the words of the entry that show it. Both are safe to show."""

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

_ADMINISTRATORS: Final = frozenset({
    "sudo", "sudo-rs", "doas", "pkexec", "su", "run0", "runas", "gsudo", "dzdo", "sudoedit",
})  # fmt: skip
_FETCHERS: Final = frozenset({
    "curl", "wget", "wget2", "curlie", "fetch", "aria2c", "axel", "http", "https", "xh", "lynx", "w3m", "lwp-request",
    "lwp-download", "iwr", "irm", "invoke-webrequest", "invoke-restmethod", "start-bitstransfer", "bitsadmin",
    "certutil", "tftp", "ftp", "sftp", "scp",
})  # fmt: skip
_RUNNERS: Final = SHELLS | POWERSHELLS | INTERPRETERS.keys() | {"cmd", "iex", "invoke-expression", "source", "."}
"""Programs that run the text they are given."""
_RAW_PROGRAMS: Final = frozenset({"nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "socat", "telnet"})
_STARTUP_PROGRAMS: Final = frozenset({"crontab", "schtasks", "launchctl", "systemctl", "at", "update-rc.d"})
_DELETERS: Final = frozenset({"shred", "srm", "wipefs", "blkdiscard", "remove-item", "format"})
_DELETING_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("rm", "ri"), re.compile(r"-[a-zA-Z]*[rRf][a-zA-Z]*|--r[a-z]*|--f[a-z]*")),
    **dict.fromkeys(("del", "erase", "rd", "rmdir"), re.compile(r"(?:/[a-z])*/[sq](?:/[a-z])*|-r\w*", re.IGNORECASE)),
    "dd": re.compile(r"of=/dev/.*"),
    "find": re.compile(r"-delete"),
    "git": re.compile(r"clean"),
}
_DECODING_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("base64", "base32", "basenc", "gbase64", "openssl"), re.compile(r"-\w*[dD]\w*|--d[a-z]*")),
    "xxd": re.compile(r"-\w*r\w*"),
}
_DELETES_FILES: Final = "It deletes files"
_HIDES: Final = "It hides what it runs, in encoded or composed text"
_RUNS_BY_ITSELF: Final = "It names what runs at login or by itself"
_CONNECTS: Final = "It opens a raw connection"
_OWNS: Final = "Its container can start others with all rights, and so owns this machine"
_FAR: Final = "Its container can use files far beyond one project"
_KEEPS_RIGHTS: Final = re.compile(r"no-new-privileges(?:[:=](?:true|1))?", re.IGNORECASE)
_NAMED: Final = re.compile(r"-|[A-Za-z_][\w.-]*=")
"""The start of a word that holds a name and a value."""
_NAMES_INSIDE: Final = frozenset({"-e", "--env", "-l", "--label"})
_EVALUATED: Final = re.compile(r"\b(?:iex|invoke-expression)\b|\[scriptblock\]", re.IGNORECASE)
_FETCHED: Final = re.compile(
    r"\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|curl|wget)\b|downloadstring|downloadfile|downloaddata|webclient",
    re.IGNORECASE,
)
_JOINS_COMMANDS: Final = re.compile(r"\||[$<]\(")
"""The shell's operators that pass one program's output to another."""
_NAME_BEFORE: Final = re.compile(r"^[^\s|]*[=!]")
"""The part of a word before a text, as in ``core.sshCommand=curl …`` or ``alias.x=!curl …``."""
_CODE_ADDRESS: Final = re.compile(r"data:|javascript:|vbscript:|about:", re.IGNORECASE)
_CODE_VARIABLES: Final = frozenset({
    "BASH_ENV", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "ENV", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS",
    "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "PROMPT_COMMAND",
    "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT", "ZDOTDIR", "_JAVA_OPTIONS", "PATH", "NODE_PATH",
    "BUN_OPTIONS", "CLASSPATH", "COMSPEC", "DOTNET_STARTUP_HOOKS", "GCONV_PATH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND", "GIT_SSH", "JDK_JAVA_OPTIONS", "LUA_INIT", "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_SCRIPT_SHELL", "PERL5DB", "PYTHONBREAKPOINT", "PYTHONUSERBASE", "SSH_ASKPASS", "SHELLOPTS", "PS4",
    "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
    "COR_PROFILER_PATH", "CORECLR_PROFILER_PATH", "NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_USERCONFIG", "OPENSSL_CONF",
    "OPENSSL_ENGINES", "OPENSSL_MODULES", "PYTHONWARNINGS",
})  # fmt: skip
_ROUTE_VARIABLES: Final = frozenset({
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "DOCKER_HOST", "CONTAINER_HOST",
})  # fmt: skip
_DOCKER_RIGHTS: Final = frozenset({"--privileged", "--cap-add", "--device", "--device-cgroup-rule", "--security-opt"})
_DOCKER_SHARED: Final = frozenset({"--network", "--net", "--pid", "--ipc", "--uts", "--userns", "--cgroupns"})
_DOCKER_FOLDERS: Final = frozenset({"-v", "--volume", "--mount"})
_OWNERS: Final = re.compile(
    r"(?:docker|podman|containerd|crio|cri-dockerd|dockershim|buildkitd)[\w.-]*\.sock[\w.]*|docker_engine\w*|system_bus_socket",
    re.IGNORECASE,
)
"""Sockets and pipes that give a program all rights of their service."""
_SWITCHED_OFF: Final = frozenset({"false", "0", "f", "no"})

_START: Final = r"(?:^|(?<=[\s;&|(`'\"]))"
"""Where a word starts: ``mcp-crontab`` is not ``crontab``."""

_DELETE_COMMAND: Final = re.compile(
    rf"{_START}(?:rm\s+-\w*[rRf]\w*|rm\s+--(?:recursive|force)|remove-item\b|(?:del|rd|rmdir)\s+/[sq]\b|mkfs\b|"
    r"shred\s|of=/dev/|-delete\b|git\s+clean\b)",
    re.IGNORECASE,
)
_ENCODED_TEXT: Final = re.compile(
    rf"{_START}(?:base64\s+(?:-d|-D|--decode)|eval\s|iex\s|invoke-expression\b|xxd\s+-r|openssl\s+enc\b)|"
    r"\bfrombase64string\b|\batob\(|\beval\(|\\x[0-9a-f]{2}\\x[0-9a-f]{2}",
    re.IGNORECASE,
)
_ENCODED_OPTION: Final = re.compile(r"[-/]e(?:c|nc\w*)?", re.IGNORECASE)
_STARTUP_PLACE: Final = re.compile(
    r"\.bash(?:rc|_profile|_login|_logout)|/\.profile|\.z(?:shrc|profile|shenv|login)|\.xprofile|\.xinitrc|"
    r"fish/config\.fish|config/autostart|launch(?:agents|daemons)|/etc/(?:profile|cron|rc\.|init|systemd|ld\.so)|"
    r"systemd/user|authorized_keys|\.ssh/(?:config|rc)|\.git/hooks|\.gitconfig|programs.startup|currentversion.run\b|"
    rf"{_START}(?:crontab|schtasks|launchctl|systemctl)(?=\s|$)",
    re.IGNORECASE,
)
_KEY_FILE: Final = re.compile(
    r"(?:\.ssh|\.gnupg|\.aws|\.kube|\.docker/config\.json|\.netrc|\.npmrc|\.pypirc|/etc/shadow|"
    r"\.mozilla|google-chrome|library/keychains|\.password-store)(?![\w-])",
    re.IGNORECASE,
)
_RAW_CONNECTION: Final = re.compile(rf"/dev/(?:tcp|udp)/|{_START}(?:nc|ncat|netcat|socat)\s+-", re.IGNORECASE)
_ADMINISTRATOR_COMMAND: Final = re.compile(rf"{_START}(?:sudo|doas|pkexec|runas)(?=\s+\S)")
_SHARED_FOLDER: Final = re.compile(
    r"(?:^|(?<=[\s'\"=:,;]))(?:(?:/private)?(?:/tmp|/var/tmp|/dev/shm|/run/shm|/run/lock|/var/lock|/var/crash)|"
    r"C:/(?:Windows/)?Temp|C:/Users/Public)(?![\w.-])[^\s'\",;]*",
    re.IGNORECASE,
)
_PLAIN_HTTP: Final = re.compile(r"http://[^\s'\"<>]+", re.IGNORECASE)
_HOME_FOLDER: Final = re.compile(
    r"~(?=/|$)|\$HOME\b|\$\{(?:env:)?HOME(?::?-[^}]*)?\}|\$\{userHome\}|%USERPROFILE%|\$env:USERPROFILE|%HOMEPATH%",
    re.IGNORECASE,
)
_WORKING_FOLDER: Final = re.compile(r"^(?:\$PWD\b|\$\{PWD\}|\$\(pwd\)|\$\{workspaceFolder\}|\$\{workspaceRoot\})")
_RUNTIME_FOLDER: Final = re.compile(r"^\$(?:\{XDG_RUNTIME_DIR\}|XDG_RUNTIME_DIR\b)")
_DISK_DEVICE: Final = re.compile(
    r"/|[A-Z]:/?|/(?:mnt|host_mnt|run/desktop/mnt/host|cygdrive)/[A-Z]|(?:\.\./){2,}\.\.", re.IGNORECASE
)
_HOME_PATH: Final = re.compile(r"/root|/(?:home|Users)(?:/[^/]+)?|[A-Z]:/Users(?:/[^/]+)?", re.IGNORECASE)
_SYSTEM_FOLDERS: Final = frozenset({
    "/etc", "/var", "/run", "/var/run", "/var/lib", "/var/lib/docker", "/var/lib/containers", "/run/docker",
    "/run/podman", "/run/containerd", "/run/user", "/run/dbus", "/run/systemd", "/proc", "/sys", "/dev", "/boot",
    "/usr", "/usr/local", "/bin", "/sbin", "/lib", "/usr/bin", "/usr/lib", "/opt", "/srv", "/mnt", "/media", "/volumes",
    "/private", "/private/etc", "/private/var", "/library", "/system", "/applications", "c:/windows", "c:/programdata",
    "c:/program files",
})  # fmt: skip
_RUN_USER: Final = re.compile(r"/run/user/\d+")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4}){10,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def danger_signs(table: Mapping[str, Any]) -> tuple[DangerSign, ...]:
    """The signs of danger in a ``[servers.NAME]`` table that was not validated yet, the worst first, each once."""
    words = command_words(table)
    env, headers = texts_by_name(table, "env"), texts_by_name(table, "http_headers")
    url, folder = as_text(table.get("url")), as_text(table.get("cwd"))
    joined = " ".join(words)
    programs = tuple(programs_in(words))
    found = [*_of_references(table)]
    found += [sign for program in programs for sign in _of_program(program)]
    found += _in_text(_with_plain_slashes(joined[:MAX_TEXT]))
    found += _of_addresses_in(joined[:MAX_TEXT])
    found += _in_words(words)
    found += _in_texts((*words[1:], *env.values()))
    found += _of_variables(env)
    found += _of_address(url)
    named = [("the command" if number == 0 else f"argument {number}", word) for number, word in enumerate(words)]
    named += [(show_line(name, LONGEST), name + value) for name, value in (*env.items(), *headers.items())]
    named += [("its address", url), ("its folder", folder)]
    found += _of_letters(named)
    names = {program[0] for program in programs} | {each.package for each in downloads_of(words, env)}
    found += _of_doubles(words, names)
    if match := _SHARED_FOLDER.match(_tidy(folder)):
        found.append(_sign(_USES, match[0]))
    if len(joined) > MAX_TEXT or len(words) > MAX_WORDS:
        size = f"{len(joined):,} characters, {len(words):,} words"
        found.append(DangerSign("It is too long to be searched for danger to its end", size))
    return tuple(sign for sign in dict.fromkeys(found) if not _is_said(sign, found))


def name_signs(name: str) -> tuple[DangerSign, ...]:
    """The signs of danger in the name that a server has where it was found."""
    return (*_of_letters([("its name there", name)]), *_of_doubles([name], ()))


def _is_said(sign: DangerSign, signs: Sequence[DangerSign]) -> bool:
    """True if a worse sign says the same."""
    worse = {_USES: _RUNS_FROM, _LOADS: _RUNS_LOADED}.get(sign.sentence)
    same = (other for other in signs if other.sentence == worse)
    return any(sign.sentence == _LOADS or other.words == sign.words for other in same)


def command_words(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the program and its arguments, as far as they are texts; the configuration's own check finds the rest."""
    args = table.get("args")
    return tuple(texts_in([table.get("command"), *(args if isinstance(args, list | tuple) else ())]))


def texts_by_name(table: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return a table inside ``table``, without values that are not texts."""
    inner = table.get(key)
    pairs = inner.items() if isinstance(inner, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


def _sign(sentence: str, *words: str) -> DangerSign:
    return DangerSign(sentence, show_line(safe_url(" ".join(filter(None, words))), LONGEST))


def _of_program(words: tuple[str, ...]) -> Iterator[DangerSign]:
    name, rest = program_name(words[0]), words[1:]
    if name in _ADMINISTRATORS:
        yield _sign("It runs as administrator", words[0])
    for script in scripts_in(words):
        yield from _of_script(words[0], script)
    if (option := _code_option(family_of(words[0]), rest)) is not None:
        yield _sign("It runs code that is written in the command itself", words[0], option)
    if name in _FETCHERS:
        yield _sign(_LOADS, words[0], *rest[-1:])
    for find, sentence in (
        (_deleting_word, _DELETES_FILES),
        (_decoding_word, _HIDES),
        (_starting_word, _RUNS_BY_ITSELF),
        (_connecting_word, _CONNECTS),
    ):
        if (word := find(name, rest)) is not None:
            yield _sign(sentence, words[0], word)
    yield from _of_variables(dict(variables_in(words)))
    yield from _of_container(words)
    if match := _SHARED_FOLDER.match(_tidy(words[0])):
        yield _sign(_RUNS_FROM, match[0])


def _of_script(program: str, script: Script) -> Iterator[DangerSign]:
    if script.syntax is ScriptSyntax.POWERSHELL and is_encoded_option(script.option):
        yield _sign("It hides what it runs, in encoded text", program_name(program), script.option)
    if not script.elsewhere:
        yield _sign("It runs a shell, which does whatever the text after it says", program, script.option)
    yield from _downloaded(script)
    yield from _in_text(_with_plain_slashes(script.text[:MAX_TEXT]))


def _code_option(family: str, words: Sequence[str]) -> str | None:
    """The word of an interpreter's command that holds code or says that code follows."""
    interpreter = INTERPRETERS.get(family)
    if interpreter is None:
        return None
    if family in ("deno", "bun") and words[:1] in (("eval",), ("repl",), ("run",)):
        if words[0] == "eval":
            return words[0]
        words = words[1:]
    reading = read_options(
        words, interpreter.code | interpreter.valued, attached=interpreter.attached, ends=interpreter.ends
    )
    for option, value, word in reading.options:
        if option in interpreter.code:
            return word if not value or value not in word else option
        if _CODE_ADDRESS.match(value):
            return option
    if family == "awk" and reading.rest and not any(option in interpreter.ends for option, *_ in reading.options):
        return ""
    first = next(iter(reading.rest), "")
    return first.partition(":")[0] + ":" if _CODE_ADDRESS.match(first) else None


def _deleting_word(name: str, words: Sequence[str]) -> str | None:
    """The word with which this program deletes more than a named file; None if it does not."""
    if name in _DELETERS or name.partition(".")[0] == "mkfs":
        return ""
    pattern = _DELETING_WORDS.get(name)
    return next((word for word in words if pattern and pattern.fullmatch(word)), None)


def _decoding_word(name: str, words: Sequence[str]) -> str | None:
    if name == "openssl" and words[:1] not in (("base64",), ("enc",)):
        return None
    pattern = _DECODING_WORDS.get(name)
    return next((word for word in words if pattern and pattern.fullmatch(word)), None)


def _starting_word(name: str, words: Sequence[str]) -> str | None:
    return "" if name in _STARTUP_PROGRAMS else None


def _connecting_word(name: str, words: Sequence[str]) -> str | None:
    return "" if name in _RAW_PROGRAMS else None


def _downloaded(script: Script) -> Iterator[DangerSign]:
    """Signs of downloading and running at once: ``curl … | sh``, ``sh <(curl …)``, ``curl -o file …; sh file``."""
    fetching, files = "", set[str]()
    for command in islice(commands_of(script), MAX_COMMANDS):
        names = [family_of(program[0]) for program in programs_in(command.words)]
        runner = next((name for name in names if name in _RUNNERS), "")
        if fetching and runner and command.piped:
            yield _sign(_RUNS_LOADED, f"{fetching} … | {runner}")
        elif fetching and (again := files.intersection(map(_last_part, command.words))):
            yield _sign(_RUNS_LOADED, f"{fetching} … {min(again)}")
        if found := next((name for name in names if name in _FETCHERS), ""):
            fetching = found
            files |= {_last_part(word) for word in command.words[1:] if not word.startswith("-") and len(word) > 1}
    for mark, words in substitutions_in(script):
        names = [program_name(program[0]) for program in programs_in(words)]
        # Data written to >(…) becomes that command's input.
        if fetching and not _RUNNERS.isdisjoint(names) if mark == ">(" else not _FETCHERS.isdisjoint(names):
            yield _sign(_RUNS_LOADED, f"{mark}{words[0]} …)")
    if script.syntax is ScriptSyntax.POWERSHELL:
        run, load = (pattern.search(script.text[:MAX_TEXT]) for pattern in (_EVALUATED, _FETCHED))
        if run and load:
            yield _sign(_RUNS_LOADED, f"{load[0]} … {run[0]}")


def _in_texts(texts: Iterable[str]) -> Iterator[DangerSign]:
    """Signs of downloads that a program would run by handing a text to a shell, whatever its option is called."""
    for text in texts:
        if _JOINS_COMMANDS.search(text[:MAX_SCRIPT]) and " " in text:
            script = Script(_NAME_BEFORE.sub("", text[:MAX_SCRIPT]).replace("`", " "), "")  # in prose, ` quotes
            programs = (each for command in commands_of(script) for each in programs_in(command.words))
            inner = (each for program in islice(programs, MAX_COMMANDS) for each in scripts_in(program))
            for each in (script, *inner):
                yield from _downloaded(each)


def _last_part(word: str) -> str:
    return re.split(r"[/\\]", word.rstrip("/\\"))[-1]


def _of_container(words: tuple[str, ...]) -> Iterator[DangerSign]:
    start = container_start(words)
    if start is None:
        return
    for name, value in start.options:
        if name in _DOCKER_RIGHTS and value.lower() not in _SWITCHED_OFF and not _KEEPS_RIGHTS.fullmatch(value):
            yield _sign("Its container gets more rights on this machine", name, value)
        if name in _DOCKER_SHARED and "host" in re.split(r"[:,=]", value.lower()):
            what = "network" if name in ("--network", "--net") else name.strip("-")
            yield _sign(f"Its container is not kept apart from this machine ({what})", name, value)
        if name in _DOCKER_FOLDERS:
            yield from _of_mount(name, value)
        if name == "--use-api-socket" and value.lower() not in _SWITCHED_OFF:
            yield _sign(_OWNS, name)
        if name == "--env-host" and value.lower() not in _SWITCHED_OFF:
            yield _sign("Its container gets all your variables", name)
        if name == "--rootfs" and value.lower() not in _SWITCHED_OFF and _is_far(start.image):
            yield _sign(_FAR, name, start.image)


def _of_mount(name: str, value: str) -> Iterator[DangerSign]:
    for source in _mounted(name, value):
        if _OWNERS.fullmatch(_last_part(_tidy(source))):
            yield _sign(_OWNS, name, value)
        elif _is_far(source):
            yield _sign(_FAR, name, value)


def _mounted(name: str, value: str) -> Iterator[str]:
    """The folders of this machine that the option gives to a container."""
    if name != "--mount":
        drive = re.match(r"[A-Za-z]:(?=[/\\])", value)
        start = drive.end() if drive else 0
        source = re.match(r"(?:\$\{[^}]*\}|[^:])*(?=:)", value[start:])
        yield value[: start + source.end()] if source else ""
        return
    try:
        fields = next(csv.reader([value]), [])
    except csv.Error:
        fields = value.split(",")
    for field in fields:
        key, _, text = field.partition("=")
        if key.strip().lower() in ("source", "src"):
            yield text
        elif key.strip().lower() == "volume-opt" and text.lower().startswith("device="):
            yield text.partition("=")[2]


def _is_far(path: str) -> bool:
    """True for a folder that holds far more than one project."""
    tidy = _tidy(path)
    far = tidy.lower() in _SYSTEM_FOLDERS or _RUN_USER.fullmatch(tidy) or re.fullmatch("/[a-z]", tidy, re.IGNORECASE)
    return _is_everything(path) or bool(far)


def _is_everything(path: str) -> bool:
    """True for the whole disk, or a whole home folder."""
    if not path or ("://" in path and not path.lower().startswith("file://")):
        return False
    tidy = _tidy(path)
    return bool(_DISK_DEVICE.fullmatch(tidy) or _HOME_PATH.fullmatch(tidy))


def _tidy(path: str) -> str:
    """The normalized path: ``/etc`` for ``//etc/./x/../``; a home folder becomes ``/home/user``."""
    if not path:
        return ""
    text = re.sub(r"^file://(?:localhost)?", "", path[:MAX_PATH].strip().replace("\\", "/"), flags=re.IGNORECASE)
    text = _RUNTIME_FOLDER.sub("/run/user/1", _WORKING_FOLDER.sub("/home/user/code/work", text, count=1), count=1)
    text = posixpath.normpath(_HOME_FOLDER.sub("/home/user", text, count=1))
    text = re.sub(r"^(?:/proc/[^/]+/(?:root|cwd)(?=/|$))+", "", re.sub("^//", "/", text))
    return text or "/"


def _with_plain_slashes(text: str) -> str:
    """The text with ``/`` for ``//`` and ``/./``, except in addresses."""
    return re.sub(r"(?<![:/])/(?:\.?/)+", "/", text)


def _in_text(text: str) -> Iterator[DangerSign]:
    for pattern, sentence in (
        (_ADMINISTRATOR_COMMAND, "It runs as administrator"),
        (_DELETE_COMMAND, _DELETES_FILES),
        (_ENCODED_TEXT, _HIDES),
        (_STARTUP_PLACE, _RUNS_BY_ITSELF),
        (_KEY_FILE, "It names a place with keys or passwords"),
        (_RAW_CONNECTION, _CONNECTS),
    ):
        if match := pattern.search(text):
            yield _sign(sentence, _whole_word(text, match))


def _whole_word(text: str, match: re.Match[str]) -> str:
    """Return the match with the rest of its word or path."""
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
        _, equals, after = word.partition("=")
        inside = words[number - 1] in _NAMES_INSIDE  # a container has its own disk
        value = after if equals and _NAMED.match(word) and not inside else word
        attached = re.fullmatch(r"-[A-Za-z](/.*)", word)
        value = attached[1] if attached else value
        if any(map(_is_everything, re.split(r"[,;]", value[:MAX_PATH]))):
            yield _sign("It is given everything: the whole disk or home folder", word)
        elif match := _SHARED_FOLDER.match(_tidy(value)) or _SHARED_FOLDER.search(_with_plain_slashes(word)):
            yield _sign(_USES, match[0])
        if any(map(_hides_text, _BASE64.findall(word[:MAX_TEXT]))):
            yield DangerSign("It hides text in base64", f"argument {number}")  # the text itself may be a secret


def _hides_text(encoded: str) -> bool:
    """True if it decodes to text. A key decodes to bytes of all kinds."""
    try:
        plain = base64.b64decode(encoded, validate=True).replace(b"\0", b"")
    except (binascii.Error, ValueError):
        return False
    return plain.isascii() and plain.decode("ascii").replace("\n", " ").replace("\t", " ").isprintable()


def _of_variables(env: Mapping[str, str]) -> Iterator[DangerSign]:
    for name, value in env.items():
        if name.upper() in _CODE_VARIABLES or name.startswith("BASH_FUNC_"):
            yield _sign("A variable changes which code its programs load", name)
        elif name.upper() in _ROUTE_VARIABLES:
            yield _sign("A variable changes where its connections go, or whom they trust", name)
        yield from _of_addresses_in(value[:MAX_TEXT])
        whole = _DISK_DEVICE.fullmatch(_tidy(value)) or (_HOME_FOLDER.match(value) and _is_everything(value))
        if whole and value not in ("~", "${HOME}"):
            yield _sign("It is given everything: the whole disk or home folder", f"{name}={value}")


def _of_references(table: Mapping[str, Any]) -> Iterator[DangerSign]:
    """Find what it would get of the user's own: items of the keychain, and contents of files."""
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


def _of_letters(named: Iterable[tuple[str, str]]) -> Iterator[DangerSign]:
    for name, text in named:
        if hidden_count(text) or _CONTROL.search(text):
            yield DangerSign("It holds characters that cannot be seen; marks such as ⟨U+200B⟩ stand for them", name)


def _of_doubles(words: Sequence[str], names: Collection[str]) -> Iterator[DangerSign]:
    """Words with letters that look like others; in the names of programs and packages any such letter counts."""
    for word in words:
        if not word.isascii():
            strict = any(name in word for name in names if not name.isascii())
            if odd := _odd_word(word, strict=strict):
                yield DangerSign("It holds letters that only look like others", show_line(odd, LONGEST))


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LOOKALIKE_SCRIPTS: Final = frozenset({
    "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL", "LISU", "SCRIPT",
    "DOUBLE-STRUCK", "BLACK-LETTER", "ROMAN",
})  # fmt: skip
"""Scripts with letters that look like Latin ones."""


def _odd_word(text: str, *, strict: bool) -> str:
    """The first word that mixes Latin letters with ones that look the same, each with its script; ``strict``: any
    such letter.
    """
    for match in _LETTERS.finditer(text[:MAX_TEXT]):
        scripts = {letter: unicodedata.name(letter, "?").partition(" ")[0] for letter in dict.fromkeys(match[0])}
        odd = [letter for letter, script in scripts.items() if script in _LOOKALIKE_SCRIPTS]
        if odd and (strict or "LATIN" in scripts.values()):
            named = ", ".join(f"{letter} is {scripts[letter].capitalize()}" for letter in odd[:4])
            return f"{match[0]} ({named})"
    return ""
