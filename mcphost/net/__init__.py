"""The common parts of everything over HTTP: origins, address classes, the client and its policies, guarded requests.

Only `mcphost.net.guarded` resolves names and opens connections.
"""
