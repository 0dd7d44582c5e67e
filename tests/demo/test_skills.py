"""The demo server's skills, as another host would check them."""

from __future__ import annotations

import hashlib

import pytest

from tests.demo.conftest import Json, Keeper


def ask(keeper: Keeper, method: str, **params: str) -> Json:
    keeper.ask(method, params)
    answer: Json = keeper.answer()
    return answer


@pytest.mark.parametrize("name", ["keep-watch", "fog-routine"])
def test_each_file_of_a_skill_is_as_its_entry_says(keeper: Keeper, name: str) -> None:
    skill = ask(keeper, "skills/get", uri=f"skill://{name}/SKILL.md")["result"]["skill"]
    assert skill in ask(keeper, "skills/list")["result"]["skills"]
    assert skill["frontmatter"]["name"] == name
    for file in skill["resources"]:
        (found,) = ask(keeper, "resources/read", uri=file["uri"])["result"]["contents"]
        content = found["text"].encode()
        assert (file["size"], file["digest"]) == (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    assert ask(keeper, "skills/get", uri="lighthouse://handbook")["error"]["code"] == -32602
