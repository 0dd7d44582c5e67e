from __future__ import annotations

import re
from typing import get_args

import pytest
from pydantic import ValidationError

from mcphost.composition.models import PROVIDER_CLASSES
from mcphost.config import ModelConfig, parse
from mcphost.config.model_providers import EXAMPLE_ENTRY, HOSTED_PROVIDERS, OTHER_PROVIDERS


def test_the_table_the_type_and_the_classes_name_the_same_providers() -> None:
    own = {"manual", "demo"}
    assert set(get_args(ModelConfig.model_fields["provider"].annotation)) == HOSTED_PROVIDERS.keys() | own
    assert PROVIDER_CLASSES.keys() == HOSTED_PROVIDERS.keys()


@pytest.mark.parametrize("provider", HOSTED_PROVIDERS)
def test_a_hosted_provider_needs_a_model(provider: str) -> None:
    with pytest.raises(ValidationError, match="needs model"):
        ModelConfig.model_validate({"provider": provider})


def test_the_example_entry_is_a_configuration() -> None:
    assert parse(EXAMPLE_ENTRY).config.models["claude"].provider == "anthropic"


def test_the_advice_names_every_other_provider() -> None:
    assert set(re.findall(r'"(\w+)"', OTHER_PROVIDERS + EXAMPLE_ENTRY)) >= HOSTED_PROVIDERS.keys()
