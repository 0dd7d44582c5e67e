"""The protocol's revisions: what each can do, how one is negotiated, and how its requests are stamped."""
