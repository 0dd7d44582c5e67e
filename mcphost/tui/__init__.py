"""The Textual app over a host: it shows what the host holds, asks what the host must know, and sends commands."""
