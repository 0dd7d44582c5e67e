"""One MCP server, spoken to over a transport: handshake, requests, notifications and server requests.

Bytes, reconnecting, consent and display are the business of other packages.
"""
