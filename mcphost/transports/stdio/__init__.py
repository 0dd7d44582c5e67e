"""A server as a child process, spoken to over its stdin and stdout."""
