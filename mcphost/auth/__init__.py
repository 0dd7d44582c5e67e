"""Signing in to a server: the OAuth flow as values and a generator, the tokens, and the way back from the browser."""
