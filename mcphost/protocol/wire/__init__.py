"""JSON-RPC messages, line framing and server-sent events: bytes to values and back."""
