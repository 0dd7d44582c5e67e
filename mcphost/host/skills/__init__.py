"""Skills of servers: found, read and verified, approved, and loaded for a model."""
