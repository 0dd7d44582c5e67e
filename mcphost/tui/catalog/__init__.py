"""Lists and panes that tools, resources and prompts share."""
