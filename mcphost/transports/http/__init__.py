"""Streamable HTTP, and HTTP+SSE of 2024-11-05."""
