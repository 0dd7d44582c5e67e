"""The endpoint: what the configured servers offer, served to agents in sessions of their own."""
