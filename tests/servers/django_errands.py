# mypy: ignore-errors
# Django is installed beside the tests, not among them (tests/pypi.py), so its types are not known here.
"""A server on djangorestframework-mcp-server, which announces changes of its tasks: django_errands.py PORT.

Its tasks are polled once an hour, so that a client without a notification of their end does not see it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from functools import partial

import django
import uvicorn
from asgiref.sync import sync_to_async
from django.conf import settings

settings.configure(
    SECRET_KEY="of a test",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "rest_framework"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    REST_FRAMEWORK_MCP={"REQUIRE_TOOL_PERMISSIONS": False, "TASK_POLL_INTERVAL_MS": 3_600_000},
)
django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402 - needs the settings
from django.urls import path  # noqa: E402
from rest_framework_mcp import MCPServer  # noqa: E402
from rest_framework_mcp.auth.backends.allow_any_backend import AllowAnyBackend  # noqa: E402
from rest_framework_mcp.constants import TaskPolicy  # noqa: E402
from rest_framework_mcp.subscriptions.in_memory_subscription_broker import InMemorySubscriptionBroker  # noqa: E402
from rest_framework_services.types.service_spec import ServiceSpec  # noqa: E402

released = threading.Event()


class Worker:
    """Runs tasks in threads of the server's loop, whose streams they publish to."""

    loop: asyncio.AbstractEventLoop

    def enqueue(self, task_id: str) -> None:
        work = sync_to_async(self.run, thread_sensitive=False)
        asyncio.run_coroutine_threadsafe(work(task_id), self.loop)

    def run(self, task_id: str) -> None:
        while not server.task_store.get(task_id).enqueued:  # until then, it is not run
            time.sleep(0.01)
        server.run_task(task_id)


worker = Worker()
server = MCPServer(
    name="errands",
    version="1.0",
    auth_backend=AllowAnyBackend(),
    task_executor=worker,
    subscription_broker=InMemorySubscriptionBroker(),
)
urlpatterns = [path("mcp/", server.async_urls)]


def research() -> dict[str, str]:
    """Works until it is told to finish."""
    released.wait()
    return {"found": "all of it"}


def finish() -> dict[str, str]:
    """Lets `research` finish."""
    released.set()
    return {"finished": "yes"}


def hurry() -> dict[str, str]:
    """Is done before anybody could ask for announcements."""
    return {"done": "at once"}


def offer(service, **more) -> None:
    spec = ServiceSpec(service=service, atomic=False)
    server.register_service_tool(name=service.__name__, description=service.__doc__, spec=spec, **more)


as_task = partial(offer, task_policy=TaskPolicy.OPTIONAL)
as_task(research)
as_task(hurry)
offer(finish)


async def main() -> None:
    worker.loop = asyncio.get_running_loop()
    options = {"host": "127.0.0.1", "port": int(sys.argv[1]), "log_level": "warning", "lifespan": "off"}
    await uvicorn.Server(uvicorn.Config(get_asgi_application(), **options)).serve()


if __name__ == "__main__":
    asyncio.run(main())
