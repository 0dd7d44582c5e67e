from __future__ import annotations

import asyncio
from unittest.mock import Mock

from textual.app import App

from mcphost.host.consent.questions import FormQuestion
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.inbox.queue import QuestionQueue


async def test_a_question_that_ends_with_the_app_opens_nothing() -> None:
    approver = ScreenApprover()
    asking = asyncio.create_task(approver.ask(FormQuestion("a", "Which?", {}, None, "")))
    await asyncio.sleep(0)
    queue = QuestionQueue(App(), Mock(), approver)  # it has no screens, as an app that has ended
    queue.changed()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    queue.changed()
    assert not approver.open
