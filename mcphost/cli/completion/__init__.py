"""Completion in a shell: ``mcphost completion SHELL`` prints a script that asks mcphost for the words at the cursor.

The words come from the parser, from the configuration, and from what was remembered of servers; nothing is started. It
takes less than 100 ms, so nothing here imports `mcphost.config` or pydantic. Written by hand: shtab has no fish, does
not know options after ``nargs="*"``, and would ask mcphost for servers and tools in the same way.
"""
