"""What everything over HTTP shares: origins, classes of addresses, proxies, trusted certificates, guarded requests.

Only `mcphost.net.guarded` resolves names and opens connections.
"""
