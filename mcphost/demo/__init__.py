"""The built-in demo server: every feature of the protocol, on the standard library alone."""
