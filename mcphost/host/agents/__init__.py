"""Agents that reach servers through a tap or a gate, and their calls."""
