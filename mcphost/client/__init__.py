"""One server, spoken to."""
