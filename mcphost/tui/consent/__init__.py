"""The dialogs for tool calls, argument rules, approvals and held results."""
