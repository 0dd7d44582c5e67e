"""The tool list, a tool's form, and the calls of this run."""
