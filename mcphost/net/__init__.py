"""What everything over HTTP shares: origins, classes of addresses, proxies and trusted certificates.

Resolves no names and opens no connections.
"""
