"""One connection per server: opening, retrying, keepalive, and what the server offers."""
