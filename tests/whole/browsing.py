"""A person at a browser: goes to a page, fills in what it asks for, agrees or not, and ends where that leads.

python -m tests.whole.browsing [--refuse] URL    as the program that opens pages on a desktop
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx

MOST_PAGES = 30


@dataclass
class Page(HTMLParser):
    """An action that a person can take on a page: send its form, or follow a link."""

    action: str = ""
    values: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Addresses by the words one clicks on."""
    _at: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = given["action"]
        elif tag == "input":
            self.values[given["name"]] = given.get("value") or "alice"
        elif tag == "a":
            self._at = given["href"]

    def handle_data(self, data: str) -> None:
        if self._at:
            self.links[data], self._at = self._at, ""


def visit(url: str, *, refuses: bool = False, stays_at: str = "") -> str:
    """Sign in as alice and agree, or refuse; the address at which it ends, where no form is.

    With ``stays_at`` no other origin than this is asked: it ends at the first address elsewhere.
    """
    with httpx.Client(trust_env=False, timeout=20) as browser:
        request = browser.build_request("GET", url)
        for _ in range(MOST_PAGES):
            if not str(request.url).startswith(stays_at):
                break
            response = browser.send(request)
            onward = response.next_request or _onward(browser, response, refuses=refuses)
            if onward is None:
                break
            request = onward
    return str(request.url)


def _onward(browser: httpx.Client, response: httpx.Response, *, refuses: bool) -> httpx.Request | None:
    page = Page()
    page.feed(response.text)
    if not page.action:
        return None
    here = str(response.url)
    if refuses:
        return browser.build_request("GET", urljoin(here, page.links["[ Cancel ]"]))
    return browser.build_request("POST", urljoin(here, page.action), data=page.values)


if __name__ == "__main__":
    visit(sys.argv[-1], refuses="--refuse" in sys.argv)
