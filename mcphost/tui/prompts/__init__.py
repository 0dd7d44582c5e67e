"""The prompts of all servers and what they return."""
