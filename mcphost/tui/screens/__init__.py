"""The screens: the main one, and a modal for each kind of question."""
