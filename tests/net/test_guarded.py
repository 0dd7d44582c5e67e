"""Guarded requests: which addresses are reached, by redirects too, and how much is taken."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from mcphost.net.addresses import Address
from mcphost.net.guarded import GuardedClient, GuardedRequest, NotReached, ResolveHost
from tests.auth.people import Talk, Web


def names(**known: str) -> ResolveHost:
    async def find(host: str, port: int) -> Sequence[Address]:
        return [ipaddress.ip_address(known[host.replace(".", "_")])]

    return find


def get(url: str, most_bytes: int = 1000) -> GuardedRequest:
    return GuardedRequest(url, 20, most_bytes)


def redirecting(targets: dict[str, str]) -> Web:
    def answer(talk: Talk) -> None:
        if target := targets.get(talk.visit.path):
            talk.whole(302, b"", location=target)
        else:
            talk.whole(200, talk.visit.path.encode())

    return Web(answer)


async def test_redirects_within_the_origin_are_followed() -> None:
    with redirecting({"/a": "/b", "/b": "c?d"}) as web:
        home = f"http://127.0.0.1:{web.port}"
        response = await GuardedClient(home).follow(get(f"{home}/a"))
        assert (response.content, response.url) == (b"/c?d", f"{home}/c?d")
        assert (await GuardedClient(home).send(get(f"{home}/a"))).status == 302


async def test_redirects_have_an_end() -> None:
    with redirecting({"/a": "/b", "/b": "/a"}) as web, pytest.raises(NotReached, match="more than 5 times"):
        await GuardedClient("http://127.0.0.1").follow(get(f"http://127.0.0.1:{web.port}/a"))
    assert len(web.visits) == 6


async def test_another_origin_is_asked_only_where_that_is_allowed() -> None:
    with redirecting({}) as other, redirecting({"/a": f"http://127.0.0.1:{other.port}/x"}) as web:
        client, request = GuardedClient("http://127.0.0.1"), get(f"http://127.0.0.1:{web.port}/a")
        with pytest.raises(NotReached, match=rf"http://127.0.0.1:{other.port}, which is another origin"):
            await client.follow(request)
        assert other.visits == []
        assert (await client.follow(request, other_origins=True)).content == b"/x"


@pytest.mark.requirement("SEC-10")
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/x",
        "http://localhost:{port}/x",
        "http://[::ffff:127.0.0.1]:{port}/x",
        "http://10.1.2.3/x",
        "http://169.254.169.254/latest",
        "http://inside.test:{port}/x",
    ],
)
async def test_a_redirect_into_a_private_network_is_not_followed(target: str) -> None:
    """The home is public by its name; the test's server stands in for it."""

    class Public(GuardedClient):
        async def _allowed_addresses(self, url: object) -> list[Address]:
            if "home.test" in str(url):
                return [ipaddress.ip_address("127.0.0.1")]
            return await super()._allowed_addresses(url)  # type: ignore[arg-type]

    with redirecting({}) as inside, redirecting({"/a": target.format(port=inside.port)}) as web:
        client = Public("http://home.test", names(home_test="203.0.114.1", inside_test="127.0.0.1"))
        with pytest.raises(NotReached, match="private network"):
            await client.follow(get(f"http://home.test:{web.port}/a"), other_origins=True)
        assert inside.visits == []


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("ftp://127.0.0.1/x", "something other than a plain web address"),
        ("file:///etc/passwd", "something other than a plain web address"),
        ("http://user:word@127.0.0.1/x", "something other than a plain web address"),
        ("http://[::1/x", "it redirects to an invalid address"),
    ],
)
async def test_a_redirect_to_no_web_address_is_refused(target: str, reason: str) -> None:
    with redirecting({"/a": target}) as web, pytest.raises(NotReached, match=reason):
        await GuardedClient("http://127.0.0.1").follow(get(f"http://127.0.0.1:{web.port}/a"), other_origins=True)


async def test_a_body_is_limited_and_can_go_elsewhere() -> None:
    def answer(talk: Talk) -> None:
        talk.whole(404 if talk.visit.path == "/missing" else 200, b"x" * 2000)

    with Web(answer) as web:
        client, home = GuardedClient("http://127.0.0.1"), f"http://127.0.0.1:{web.port}"
        with pytest.raises(NotReached, match=r"larger than 1\.0 kB"):
            await client.send(get(f"{home}/a"))
        taken: list[bytes] = []
        response = await client.send(get(f"{home}/a", 2000), taken.append)
        assert (b"".join(taken), response.content) == (b"x" * 2000, b"")
        with pytest.raises(NotReached, match=r"larger than 1\.0 kB"):
            await client.send(get(f"{home}/a", 1000), taken.append)
        taken.clear()
        assert len((await client.send(get(f"{home}/missing", 2000), taken.append)).content) == 2000
        assert taken == []


async def test_a_refusal_of_a_download_is_bounded() -> None:
    with Web(lambda talk: talk.whole(404, b"x" * 300_000)) as web:
        request = get(f"http://127.0.0.1:{web.port}/a", 1_000_000)
        with pytest.raises(NotReached, match="larger than 256 kB"):
            await GuardedClient("http://127.0.0.1").send(request, lambda _: None)
        assert len((await GuardedClient("http://127.0.0.1").send(request)).content) == 300_000
