"""Skills of all servers: finds them, reads and verifies their files, and loads them for a model.

A skill is found by its server's configured name and its URI. `SkillService.load` is the only way to a model: it asks,
and verifies what it loads. No file is read before it is asked for.

Specification: ext-skills skills (lazy retrieval, verification on read, reading skill content).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcphost.client.cache import CachedResult
from mcphost.errors import (
    CapabilityMissing,
    CapabilityWithheld,
    InvalidResult,
    McphostError,
    MessageTooLarge,
    ServerError,
    SkillRefused,
    UnknownName,
)
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.skill_approvals import ApprovedSkill, SkillApproval, SkillState, skill_differences
from mcphost.host.consent.skill_consent import SkillConsent
from mcphost.host.events import ServersChanged, SkillLoaded, SkillRead, SkillsChanged
from mcphost.host.reporting import Reporting
from mcphost.host.skills.verification import (
    VerifiedFile,
    check_entry,
    checked_bytes,
    checked_text,
    frontmatter_of,
    own_content,
    unchecked_bytes,
)
from mcphost.host.skills.windows import SkillWindow, WindowBasis
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show_name
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.revisions import has_extension
from mcphost.protocol.models.skills import SKILL_BYTES, Skill, SkillFile, normal_uri
from mcphost.protocol.skill_text import split_frontmatter
from mcphost.protocol.skill_uris import SKILL_FILE, read_skill_uri, resolve
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.providers.base import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcphost.host.consent.questions import Answer

TEXTS: Final = 64
"""Texts of SKILL.md that are held to show what changed."""

TEXT_CHARACTERS: Final = 256 << 10
"""Characters of the longest of them."""

TOO_LARGE: Final = "too-large-message"
"""The finding of a file whose answer is over the limit of messages."""

RECOVERY_SECONDS: Final = 10.0
"""Seconds for a server to say whether a file that differs belongs to another entry by now."""

ESCAPED: Final = 6
"""Bytes of a message that one byte of a text may take, as ``\\u0000``."""

ENVELOPE: Final = 64 << 10
"""Bytes of a message around the content of a file."""

NAMED: Final = 12
"""Names or URIs that an error names."""


class FileState(Enum):
    """State of a skill's file in this run; the value is the word on screen."""

    NOT_READ = "not read"
    VERIFIED = "verified"
    DIFFERS = "differs"


class FileStatus(NamedTuple):
    state: FileState = FileState.NOT_READ
    at: datetime | None = None
    """When it was read last."""
    problem: str = ""
    """The difference, as a sentence that is safe to show."""

    @property
    def words(self) -> str:
        """Such as ``verified 12:03``."""
        verified = self.state is FileState.VERIFIED and self.at is not None
        return f"{self.state.value} {self.at:%H:%M}" if verified else self.state.value


class SkillStatus(NamedTuple):
    """State of a skill by the user's approvals and its own entry."""

    kind: SkillState
    words: str
    """The state in words, with the reason where it is refused; not safe to show."""
    approval: SkillApproval


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill that was allowed and verified; its text is untrusted input from its server."""

    server: str
    skill: Skill
    """The entry that it is held to."""
    body: str
    """The text of SKILL.md without its frontmatter."""
    text: str
    """The whole text of SKILL.md."""
    frontmatter: Mapping[str, Any]
    tokens: int
    """About what the text costs."""
    hidden: int
    """The number of invisible characters in the text."""
    window: SkillWindow
    """Reads further files of the skill, as long as the skill is in the model's context."""


class SkillService:
    """Finds, reads and loads skills. All methods raise UnknownName, ServerNotReady, or as a request does."""

    def __init__(
        self, servers: Servers, catalog: Catalog, consent: SkillConsent, requests: AuditedRequests, reporting: Reporting
    ) -> None:
        self._servers, self._catalog, self._consent, self._requests = servers, catalog, consent, requests
        self._audit, self._bus, self._mask = reporting.audit, reporting.bus, reporting.mask
        self._files: dict[tuple[str, str, str, str], FileStatus] = {}
        """By server, skill, file and digest, so that a rotated file counts as not read."""
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._bus.observe(self._listed, SkillsChanged)
        self._bus.observe(self._forget_removed, ServersChanged)

    # What is known without asking a server.

    def status(self, server: str, skill: Skill) -> SkillStatus:
        """The state of a skill, from its entry and the user's approvals; nothing is read for it."""
        approval = self._consent.status_of(server, self._servers[server].config.identity, skill)
        words = approval.state.value
        if approval.state is SkillState.REFUSED:
            words = f"refused: {skill.refusal}"
        elif approval.state is SkillState.CHANGED:
            words = f"changed: {approval.differences.words}"
        elif approval.lapsed:
            words = "new: your approval is too old"
        return SkillStatus(approval.state, words, approval)

    def unasked(self, server: str, skill: Skill) -> Answer | None:
        """The answer that rules and approvals give about a skill now; None where the user is asked."""
        return self._consent.unasked(server, self._servers[server].config.identity, skill)

    async def refresh_approvals(self) -> None:
        """Take over what another mcphost allowed or took back."""
        await self._consent.refresh()

    def file_status(self, server: str, skill: Skill, file: SkillFile) -> FileStatus:
        """The status of a file in this run."""
        return self._files.get((server, skill.key, normal_uri(file.uri), file.digest), FileStatus())

    def namesakes(self, server: str, skill: Skill) -> list[Skill]:
        """The other skills of the server that have the same name."""
        others = (each.skill for each in self._catalog.skills(server))
        return [each for each in others if each.name == skill.name and each.key != skill.key]

    # Finding.

    async def find(self, server: str, name_or_uri: str) -> Skill:
        """The skill of this name, or of the SKILL.md with this URI, listed or not.

        Raises UnknownName if no skill has it, or if several have the name; ListingFailed if the list is not known.
        """
        connection = await self._reach(server)
        await connection.current(CatalogKind.SKILLS)
        if (listed := self._catalog.skill(server, name_or_uri)) is not None:
            return listed
        skills = [each.skill for each in self._catalog.skills(server)]
        named = [each for each in skills if each.name == name_or_uri]
        if len(named) == 1:
            return named[0]
        if named:
            uris = ", ".join(show_name(each.uri) for each in named[:NAMED])
            raise UnknownName(
                f"{server} has {len(named)} skills {show_name(name_or_uri)}; say which by its URI: {uris}"
            )
        if ":" in name_or_uri:
            return await self._get(connection, name_or_uri, again=False)
        if (failure := connection.listings.skills.failure) is not None:
            raise failure
        known = ", ".join(dict.fromkeys(show_name(each.label, 80) for each in skills[:NAMED])) or "none"
        more = " …" if len(skills) > NAMED else ""
        raise UnknownName(f"{server} has no skill {show_name(name_or_uri)}; it has: {known}{more}")

    async def refresh(self, server: str, uri: str) -> Skill:
        """Get the entry of a skill again from its server; another set of files revokes its approval."""
        return await self._get(await self._reach(server), uri, again=True)

    # Reading: for a person, who asked for it.

    async def read(self, server: str, uri: str, path: str = "", *, origin: str = "you") -> VerifiedFile:
        """Read and verify one file of a skill, its SKILL.md without a ``path``. It activates nothing.

        Raises SkillRefused where the skill or the file is not as its entry says.
        """
        return await self.read_file(server, await self.find(server, uri), path, origin=origin)

    async def read_file(
        self, server: str, skill: Skill, path: str = "", *, origin: str, again: bool = False
    ) -> VerifiedFile:
        """Read and verify one file of this very entry; ``again``: not from the cache.

        After a failure, the entry is got again to tell a change.
        """
        check_entry(skill)
        uri, file = self._named(skill, path or SKILL_FILE)
        path = skill.path_of(uri)
        status = FileStatus()
        try:
            verified = await self._verified(server, skill, uri, file, path, origin, again=again)
            status = FileStatus(FileState.VERIFIED, verified.checked_at)
            return verified
        except SkillRefused as refused:
            status = FileStatus(FileState.DIFFERS, datetime.now().astimezone(), self._mask(str(refused)))
            record = {"event": "skill refused", "server": server, "skill": skill.uri, "uri": uri}
            self._audit.note({**record, "asked_by": origin, "finding": refused.finding, "reason": str(refused)})
            if refused.finding != TOO_LARGE:  # the rest of that answer may still be on its way, before any other
                await self._recover(server, skill)
            raise
        finally:
            if status.at is not None:
                self._files[server, skill.key, normal_uri(uri), "" if file is None else file.digest] = status
                self._bus.publish(SkillRead(server, skill.uri, uri))

    # Loading: the only way to a model.

    async def load(self, server: str, uri: str, *, origin: str = "you") -> LoadedSkill:
        """Load a skill for a model: ask, unless exactly these files were allowed for longer; then read and verify.

        Raises Declined, SkillRefused where it is not as its entry says, or where it changed meanwhile.
        """
        skill = await self.find(server, uri)
        connection = self._servers[server]
        if connection.listings.skills.expired:
            skill = await self._get(connection, skill.uri, again=True)
        check_entry(skill)
        identity = connection.config.identity
        answer = await self._consent.decide(server, identity, skill, origin, self._text_of)
        self._check_unchanged(server, identity, skill)
        file = await self.read_file(server, skill, origin=origin)
        text = file.text or ""
        body, hidden = await asyncio.to_thread(_body_of, text)
        self._check_unchanged(server, identity, skill)
        self._consent.remember(server, identity, skill, answer)
        self._audit.note({"event": "skill", "server": server, "skill": skill.uri, "asked_by": origin, "loaded": True})
        self._bus.publish(SkillLoaded(server, skill.uri))
        once = answer.by != "policy" and answer.lifetime is Lifetime.ONCE
        basis = WindowBasis.ANSWER if once else WindowBasis.APPROVAL
        window = self.window(server, identity, skill, basis)
        return LoadedSkill(server, skill, body, text, frontmatter_of(skill), estimate_tokens(text), hidden, window)

    def window(self, server: str, identity: str, skill: Skill, basis: WindowBasis) -> SkillWindow:
        """A window on an entry from now on; its `SkillWindow.problem` says if it still counts."""
        return SkillWindow(
            self.read_file, self._problem_of, server, identity, skill, datetime.now().astimezone(), basis
        )

    def forget(self, server: str) -> None:
        """Forget what was read of a server's skills."""
        self._files = {key: each for key, each in self._files.items() if key[0] != server}
        for key in [key for key in self._texts if key[0] == server]:
            del self._texts[key]

    # Parts.

    async def _reach(self, server: str) -> Connection:
        connection = self._servers[server]
        await self._requests.reach(connection)
        if not connection.has_skills:
            capabilities = {} if connection.session is None else connection.session.server.capabilities
            withheld = has_extension(SKILLS_EXTENSION, capabilities)
            raise (CapabilityWithheld if withheld else CapabilityMissing)("skills/list", SKILLS_EXTENSION)
        return connection

    async def _get(self, connection: Connection, uri: str, *, again: bool) -> Skill:
        """The entry from the server. If the list has another, it is listed again."""
        server = connection.name
        try:
            found = await self._requests.repeat(connection, uri, lambda: connection.client.skills.get(uri, again=again))
        except ServerError as error:
            if error.code != ErrorCode.INVALID_PARAMS:
                raise
            raise UnknownName(f"{server} has no skill {show_name(uri)}: {error.message}") from None
        skill = found.skill
        self._consent.noticed(server, connection.config.identity, [skill])
        listed = self._catalog.skill(server, uri)
        if listed is not None and listed.canonical != skill.canonical:
            await connection.relist(CatalogKind.SKILLS)
        return skill

    def _named(self, skill: Skill, path: str) -> tuple[str, SkillFile | None]:
        """The URI of a file of a skill, and its entry. Raises SkillRefused for a path that the entry lacks."""
        try:
            listed = skill.file(path) or skill.file_at(path)
            uri = resolve(read_skill_uri(skill.uri), path).text if listed is None else listed.uri
        except InvalidResult as error:
            words = f"The path {show_name(path)} {error}; nothing was read."
            raise SkillRefused("unlisted-file", words) from None
        if skill.dynamic:
            return (skill.uri if normal_uri(uri) == skill.key else uri), None
        if (file := skill.file(uri)) is None:
            words = f"{show_name(path)} is not a file of the skill {show_name(skill.label, 80)}; nothing was read."
            raise SkillRefused("unlisted-file", words)
        return file.uri, file

    async def _verified(
        self, server: str, skill: Skill, uri: str, file: SkillFile | None, path: str, origin: str, *, again: bool
    ) -> VerifiedFile:
        fetched = await self._fetch(server, skill, uri, file, origin, again=again)
        try:
            return await self._checked(server, skill, uri, file, path, fetched.result)
        except SkillRefused:
            if not fetched.freshness.cached:
                raise
        # What is kept may be older than the entry.
        fetched = await self._fetch(server, skill, uri, file, origin, again=True)
        return await self._checked(server, skill, uri, file, path, fetched.result)

    async def _fetch(
        self, server: str, skill: Skill, uri: str, file: SkillFile | None, origin: str, *, again: bool
    ) -> CachedResult:
        record = {"event": "skill file", "skill": skill.uri, "uri": uri}
        try:
            return await self._requests.send(
                server, record, uri, origin, lambda client: client.resources.fetch(uri, again=again)
            )
        except ServerError as error:
            if error.code not in (ErrorCode.INVALID_PARAMS, ErrorCode.RESOURCE_NOT_FOUND):
                raise
            words = f"The server does not have {show_name(skill.path_of(uri))}, which its entry lists: {error.message}"
            raise SkillRefused("not-served", words) from None
        except MessageTooLarge as error:
            if file is None:
                raise
            words = f"The file {show_name(skill.path_of(uri))} was not read: {error}"
            if file.size * ESCAPED + ENVELOPE < error.limit:
                raise SkillRefused(TOO_LARGE, f"{words}; its entry says {file.size:,} bytes.") from None
            more = f"the file has {file.size:,} bytes, and more as the server writes it"
            raise SkillRefused(TOO_LARGE, f"{words}; {more}; raise message_bytes in [limits].") from None

    async def _checked(
        self, server: str, skill: Skill, uri: str, file: SkillFile | None, path: str, result: Mapping[str, Any]
    ) -> VerifiedFile:
        def check() -> tuple[bytes, str | None, str | None]:
            content = own_content(uri, result)
            data = unchecked_bytes(path, content, SKILL_BYTES) if file is None else checked_bytes(path, file, content)
            if normal_uri(uri) == skill.key:
                return data, checked_text(skill, data), content.mime_type
            return data, _text(data), content.mime_type

        data, text, mime_type = await asyncio.to_thread(check)
        if text is not None and file is not None and normal_uri(uri) == skill.key:
            self._hold_text(server, file.digest, text)
        return VerifiedFile(skill, uri, path, data, text, mime_type, datetime.now().astimezone(), file is not None)

    async def _recover(self, server: str, skill: Skill) -> None:
        """Get the entry again after a failure; raise that the skill changed where it lists other files by now."""
        try:
            async with asyncio.timeout(RECOVERY_SECONDS):
                now = await self._get(self._servers[server], skill.uri, again=True)
        except (McphostError, TimeoutError):
            return
        if not _same_files(now, skill):
            self._refuse_changed(server, skill, now)

    def _check_unchanged(self, server: str, identity: str, skill: Skill) -> None:
        """Raise SkillRefused if the skill or the program changed while the user was asked or the file was read."""
        if self._servers[server].config.identity != identity:
            raise SkillRefused("changed", self._problem_of(server, identity, skill))
        listed = self._catalog.skill(server, skill.uri)
        if listed is not None and not _same_files(listed, skill) and not self._servers[server].listings.skills.stale:
            self._refuse_changed(server, skill, listed)

    def _problem_of(self, server: str, identity: str, skill: Skill, *, approved: bool = False) -> str:
        """Why a held entry no longer holds, as a sentence; empty while it does."""
        connection = self._servers.get(server)
        if connection is None:
            return f"The server {server} was removed."
        if connection.config.identity != identity:
            return f"{server} is now another program or address: approve the skill again."
        now = self._catalog.skill(server, skill.uri) if connection.ready else None
        if now is not None and not _same_files(now, skill):
            return f"The skill {show_name(skill.label, 80)} changed at its server: approve it again."
        approval = self._consent.status_of(server, identity, skill)
        if not approved or approval.state is SkillState.APPROVED:
            return ""
        name = show_name(skill.label, 80)
        if approval.since is None:
            return f"You took back your approval of the skill {name}."
        return f"Your approval of the skill {name} no longer holds."

    def _refuse_changed(self, server: str, before: Skill, now: Skill) -> None:
        name = show_name(before.label, 80)
        if now.refusal:
            raise SkillRefused("changed", f"The skill {name} changed at its server, and is refused. {now.refusal}")
        old, new = (ApprovedSkill.of(server, "", each, datetime.now().astimezone()) for each in (before, now))
        found = skill_differences(old, new)
        words = found.words or "its server no longer vouches for any file"
        raise SkillRefused(
            "changed", f"The skill {name} changed at its server ({words}): approve it again.", found.files
        )

    def _hold_text(self, server: str, digest: str, text: str) -> None:
        if len(text) <= TEXT_CHARACTERS:
            self._texts[server, digest] = text
            self._texts.move_to_end((server, digest))
            while len(self._texts) > TEXTS:
                self._texts.popitem(last=False)

    def _text_of(self, server: str, digest: str) -> str | None:
        return self._texts.get((server, digest))

    def _listed(self, event: SkillsChanged) -> None:
        connection = self._servers.get(event.server)
        if connection is not None and connection.ready:
            skills = [each.skill for each in self._catalog.skills(event.server)]
            self._consent.noticed(event.server, connection.config.identity, skills)

    def _forget_removed(self, _: ServersChanged) -> None:
        for server in {key[0] for key in (*self._files, *self._texts)}:
            if server not in self._servers:
                self.forget(server)


def _same_files(one: Skill, other: Skill) -> bool:
    return one.dynamic == other.dynamic and one.manifest == other.manifest and not one.refusal


def _body_of(text: str) -> tuple[str, int]:
    """The body of a SKILL.md, and the number of invisible characters in the whole."""
    return split_frontmatter(text)[1], hidden_count(text)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
