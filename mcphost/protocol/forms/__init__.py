"""Forms from JSON Schemas: fields, entered values, and the resulting arguments."""
