"""The dialogs for elicitation by form and by URL."""
