"""The pane for skills: the list, and a reader that verifies what it reads."""
