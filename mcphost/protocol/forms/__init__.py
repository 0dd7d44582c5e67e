"""A JSON Schema as a form: its fields, what was typed into them, and the arguments that result."""
