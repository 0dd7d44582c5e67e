"""Reports on stderr what became of server requests in a run without a screen."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from mcphost.cli.approver import typed_line
from mcphost.cli.output import remark
from mcphost.cli.terminal import has_terminal
from mcphost.host.consent.questions import wall_clock
from mcphost.host.events import ElicitationChanged, FormAnswered, SamplingChanged
from mcphost.protocol.display import show_line
from mcphost.redaction import mask_credentials

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.sampling.request import Sampling, SamplingState
    from mcphost.host.server_requests.url_elicitation import UrlElicitation

FORM_CHARACTERS: Final = 4000
"""Characters shown of what a form got."""


class SamplingReporter:
    """Prints which model was asked for which server, and why one failed, which the server does not learn."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._reported: set[tuple[int, int | SamplingState]] = set()
        host.bus.observe(self._on_event, SamplingChanged)

    def _on_event(self, event: SamplingChanged) -> None:
        sampling = self._host.sampling.all.get(event.sampling)
        if sampling is None:
            return
        from mcphost.host.sampling.request import SamplingState  # late: most runs ask no model

        if sampling.state is SamplingState.STREAMING and self._is_new(sampling, sampling.attempts):
            remark(
                f"asking {show_line(sampling.model.entry)} for {sampling.server} ({show_line(sampling.reason, 200)})"
            )
        if sampling.state is SamplingState.FAILED and self._is_new(sampling, sampling.state):
            remark(f"no model answered {sampling.server}: {show_line(str(sampling.error), 1000)}")

    def _is_new(self, sampling: Sampling, what: int | SamplingState) -> bool:
        key = sampling.number, what
        new = key not in self._reported
        self._reported.add(key)
        return new


class FormReporter:
    """Prints what a form got by a rule."""

    def __init__(self, host: Host) -> None:
        host.bus.observe(self._on_event, FormAnswered)

    @staticmethod
    def _on_event(event: FormAnswered) -> None:
        content = mask_credentials(json.dumps(event.content, ensure_ascii=False))
        remark(f"{event.server} gets this form: {show_line(content, FORM_CHARACTERS)} ({event.by})")


class UrlElicitationReporter:
    """Prints URLs for which no browser was opened, and ends the wait of a request for its page.

    The wait ends when the server or the person says so; without a terminal after ``timeout`` seconds
    (None: the server's ``tool_timeout_sec``). ``asking`` is held while a person is asked.
    """

    def __init__(self, host: Host, asking: asyncio.Lock, timeout: float | None = None) -> None:
        self._host, self._asking, self._timeout = host, asking, timeout
        self._waits: dict[int, asyncio.Task[None]] = {}
        host.bus.observe(self._on_event, ElicitationChanged)

    def _on_event(self, event: ElicitationChanged) -> None:
        page = self._host.elicitation.all[event.elicitation]
        if page.state.ended:
            if (wait := self._waits.pop(page.number, None)) is not None:
                wait.cancel()
            return
        if page.not_opened:
            remark(f"no browser was opened ({page.not_opened}); the page is {show_line(page.address.opens, 8192)}")
        if page.until is not None and page.number not in self._waits:
            self._waits[page.number] = asyncio.create_task(self._wait_for_page(page), name=f"page {page.number}")

    async def _wait_for_page(self, page: UrlElicitation) -> None:
        if has_terminal():
            limit = "" if page.until is None else f", until {wall_clock(page.until)}"
            async with self._asking:
                await typed_line(f"Press Enter once you are done there{limit}. ")
        else:
            seconds = self._timeout or self._host.servers[page.server].config.tool_timeout_sec
            # Where a page has no id, the server cannot say that it is done.
            says = f", or when {page.server} says that you are done there" if page.elicitation else ""
            remark(f"this goes on after {seconds:g} s{says}")
            await asyncio.sleep(seconds)
        page.go_on()
