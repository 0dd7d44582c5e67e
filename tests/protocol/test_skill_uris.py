"""The URIs of skills and their files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.errors import InvalidResult
from mcphost.protocol.skill_uris import looks_like, read_skill_uri, resolve, same_skill_uri

ROOT = read_skill_uri("skill://acme/pdf/SKILL.md")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("skill://pdf/SKILL.md", "SKILL://PDF/SKILL.md"),
        ("skill://pdf/SKILL.md", "skill://pdf/%53KILL.md"),
        ("skill://pdf/a%2db", "skill://pdf/a-b"),
        ("skill://pdf/a%c3%bc", "skill://pdf/a%C3%BC"),
        ("skill://pdf/ü", "skill://pdf/%C3%BC"),
        ("https://host:443/pdf/SKILL.md", "https://HOST/pdf/SKILL.md"),
    ],
)
def test_spellings_of_one_uri_are_equal(one: str, other: str) -> None:
    assert same_skill_uri(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("skill://pdf/SKILL.md", "skill://pdf/skill.md"),
        ("skill://pdf/a%20b", "skill://pdf/a+b"),
        ("skill://pdf/a", "skill:///pdf/a"),
        ("https://host/pdf", "http://host/pdf"),
        ("not a uri", "not a uri"),
    ],
)
def test_other_uris_are_not_equal(one: str, other: str) -> None:
    assert not same_skill_uri(one, other)


@pytest.mark.hostile("SK07")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("file:///etc/passwd", "names a file of this machine"),
        ("FILE:/etc/passwd", "names a file of this machine"),
        ("skill://pdf/../x", "leads elsewhere"),
        ("skill://pdf/%2e%2e/x", "leads elsewhere"),
        ("skill://pdf/./x", "leads elsewhere"),
        ("skill://../x", "leads elsewhere"),
        ("skill://pdf/%2e%2e%2fx", "hides a separator"),
        ("skill://pdf/a%5Cb", "hides a separator"),
        ("skill://pdf/a%00b", "hides a separator"),
        ("skill://pdf/a\\b", "characters that no URI may hold"),
        ("skill://pdf/a b", "characters that no URI may hold"),
        ("skill://pdf/a\nb", "characters that no URI may hold"),
        ("skill://pdf//x", "empty step"),
        ("skill://pdf/x/", "empty step"),
        ("skill://pdf/x?y", "has a query"),
        ("skill://pdf/x#y", "has a fragment"),
        ("skill://a@pdf/x", "user name"),
        ("skill://pdf/%zz", "percent sign"),
        ("skill:pdf", "no scheme with a path"),
        ("/pdf/x", "no scheme with a path"),
        (f"skill://pdf/{'x' * 2048}", "2048 are the most"),
    ],
)
def test_a_uri_that_could_mean_something_else_is_refused(uri: str, reason: str) -> None:
    with pytest.raises(InvalidResult, match=reason):
        read_skill_uri(uri)


def test_a_folder_that_only_begins_alike_is_another() -> None:
    assert read_skill_uri("skill://acme/pdf-evil/x").path_in(ROOT) is None
    assert read_skill_uri("skill://acme/pdf/a/x").path_in(ROOT) == "a/x"
    assert read_skill_uri("skill://other/pdf/a/x").path_in(ROOT) is None


def test_the_authority_is_the_first_step_of_a_path() -> None:
    assert read_skill_uri("skill://pdf/SKILL.md").folders == ("pdf",)
    assert ROOT.folders == ("acme", "pdf")


def test_a_path_is_resolved_in_its_own_folder() -> None:
    assert resolve(ROOT, "./references/a b.md").text == "skill://acme/pdf/references/a%20b.md"


@pytest.mark.requirement("SKILL-09")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "file:x", "skill://acme/pdf/x", "a%2fb", "", "a?b"])
def test_a_path_that_leads_out_of_the_folder_is_refused(path: str) -> None:
    with pytest.raises(InvalidResult):
        resolve(ROOT, path)


def test_names_that_differ_in_case_or_width_look_alike() -> None:
    assert looks_like("skill://pdf/SKILL.md") == looks_like("skill://pdf/skill.md")
    assert looks_like("skill://pdf/%EF%BD%81") == looks_like("skill://pdf/A")


@given(st.text(max_size=60))
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    try:
        read = read_skill_uri(f"skill://pdf/{text}")
    except InvalidResult:
        return
    assert read_skill_uri(read.text) == read
