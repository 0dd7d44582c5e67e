"""Servers that come in from elsewhere: those found on this machine, and those that the user names."""
