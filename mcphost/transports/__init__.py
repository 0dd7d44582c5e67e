"""Transports: each turns a request into its response over one kind of connection.

They know nothing of methods, retries of whole requests, or consent. What they send and receive can be observed through
a `mcphost.transports.base.MessageObserver`.
"""
