"""Runs a server as a child process and speaks to it over stdin and stdout."""
