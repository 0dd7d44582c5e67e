"""The agents that reach their servers through a tap or gate."""
