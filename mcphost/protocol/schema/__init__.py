"""JSON Schema from outside: validation, its cost, and the sentences for what does not fit."""
