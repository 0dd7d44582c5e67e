"""Reading resources and prompts, and completing their arguments."""
