"""The logs of all servers."""
