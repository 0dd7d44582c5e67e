"""The protocol revisions: what each can do, how one is negotiated, and how requests are written in it."""
