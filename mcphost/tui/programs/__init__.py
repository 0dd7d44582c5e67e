"""The user's own editor and pager, to which mcphost lends the terminal."""
