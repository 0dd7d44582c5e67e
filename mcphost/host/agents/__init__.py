"""Agents that reach their servers through a tap or gate: their sessions, and the calls that wait for consent."""
