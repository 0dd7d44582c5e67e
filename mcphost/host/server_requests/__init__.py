"""What servers ask of the client: elicitation, roots, and the queue of pending requests."""
