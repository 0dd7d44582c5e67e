"""Untrusted JSON Schemas: validation, its cost, and sentences for problems. Nothing is ever fetched."""
