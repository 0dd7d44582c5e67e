"""A form made from a JSON Schema: one row a field, raw JSON one key away, and nothing typed ever lost."""

from __future__ import annotations

from mcphost.tui.forms.schema_form import FormState, SchemaForm

__all__ = ["FormState", "SchemaForm"]
