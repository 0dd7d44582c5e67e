"""Every private member of Textual that mcphost uses or replaces, each with its reason.

No other package of mcphost uses one. A test for each fails with a sentence when Textual changes it.
"""
