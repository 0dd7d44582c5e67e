"""Brings servers in from elsewhere: other hosts' files, registries, bundles, links, a command line; and takes them out.

Reading is harmless: nothing here runs a program, and only the registry calls an address, when the user names it.
Whatever is read is hostile.
"""
