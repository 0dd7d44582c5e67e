"""Language models behind one interface.

Providers answer what they are asked; whether to ask is decided in `mcphost.host`.
"""
