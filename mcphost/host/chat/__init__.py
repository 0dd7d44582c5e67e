"""Conversations with a language model that uses servers' tools, while the person stays in charge of every call."""
