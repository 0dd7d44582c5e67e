"""The dialog for signing in to a server."""
