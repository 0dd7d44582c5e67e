"""Server requests: elicitation, roots, and the queue of pending requests."""
