"""The list of tools, a tool's form, and the calls of all runs."""
