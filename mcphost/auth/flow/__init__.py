"""The OAuth flow as a generator: its steps, documents and endpoints. Nothing in here waits."""
