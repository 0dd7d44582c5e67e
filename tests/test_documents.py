"""What the documents say is what the program does, where that can be told by looking at both."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config import Config
from mcphost.protocol.schemas import DIALECTS
from mcphost.transports.stdio import INHERITED

ROOT = Path(__file__).parents[1]
SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")


@pytest.mark.requirement("SEC-03")
def test_the_page_on_security_is_linked_and_tells_of_consent_access_and_privacy() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text("utf-8")
    headings = [line.removeprefix("## ") for line in SECURITY.splitlines() if line.startswith("## ")]
    assert headings[:4] == [
        "What you are asked",
        "What you can limit and take back",
        "What leaves your machine",
        "What is kept, and where",
    ]


@pytest.mark.requirement("SEC-03")
def test_the_page_on_security_names_what_there_is() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcphost").rglob("*.py"))
    for name in ("approvals", "trusted", "audit.jsonl"):
        assert f'"{name}' in source
        assert name in SECURITY
    assert {"policy", "limits"} <= Config.model_fields.keys()
    assert {"HOME", "PATH", "LANG"} <= set(INHERITED)


@pytest.mark.requirement("SCHEMA-02")
def test_every_dialect_of_a_schema_is_documented() -> None:
    for dialect in DIALECTS:
        word = dialect.split("/")[-2].removeprefix("draft-0")
        assert word in SECURITY.partition("## Text and schemas")[2].partition("## ")[0], dialect
