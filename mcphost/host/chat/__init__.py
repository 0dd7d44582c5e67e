"""Conversations with a language model that uses the tools of servers, while the person stays in charge of every call."""
