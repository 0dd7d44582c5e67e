"""The queue of questions, and the screen that lists them."""
