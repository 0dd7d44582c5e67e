"""``mcphost history``: the calls of earlier runs."""
