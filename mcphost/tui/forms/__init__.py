"""Forms: made from a JSON Schema, and of plain texts."""
