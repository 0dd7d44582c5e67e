"""The agents that reach their servers through mcphost."""
