"""The Model Context Protocol as values and rules: messages, revisions, models, schemas, forms and safe display.

Nothing here waits, reads files or knows a transport.
"""
