"""The resources of all servers and their contents."""
