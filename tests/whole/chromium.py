"""Chromium without a window, as the program that opens pages on a desktop: it signs in as alice and agrees.

python -m tests.whole.chromium FILE URL    FILE is given the words of the last page, which has no form
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

SECONDS = 40
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
)
FILL_IN = """
(() => {
  if (document.readyState !== 'complete' || location.protocol !== 'http:') return '';
  const form = document.querySelector('form');
  if (!form) return document.body.innerText;
  if (form.dataset.sent) return '';
  form.dataset.sent = 'yes';
  for (const field of form.querySelectorAll('input[required]')) field.value = 'alice';
  form.querySelector('[type=submit]').click();
  return '';
})()
"""


async def sign_in(port: int, url: str) -> str:
    """The words of the page at which it ends."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as listed:
            pages = await listed.json()
        place = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        async with session.ws_connect(place) as tab:
            await run_command(tab, "Page.navigate", url=url)
            while True:
                answer = await run_command(tab, "Runtime.evaluate", expression=FILL_IN)
                if words := answer.get("result", {}).get("value"):
                    return str(words)
                await asyncio.sleep(0.05)


async def run_command(tab: aiohttp.ClientWebSocketResponse, method: str, **params: Any) -> dict[str, Any]:
    await tab.send_json({"id": 1, "method": method, "params": params})
    while "id" not in (message := await tab.receive_json()):
        pass
    found: dict[str, Any] = message.get("result", {})
    return found


def main(file: Path, url: str) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = ["chromium", *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
            try:
                assert browser.stderr is not None
                line = next(line for line in browser.stderr if "DevTools listening on" in line)
                port = int(line.rpartition(":")[2].partition("/")[0])
                file.write_text(asyncio.run(asyncio.wait_for(sign_in(port, url), SECONDS)))
            finally:
                browser.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
