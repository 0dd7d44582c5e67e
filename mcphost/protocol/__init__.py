"""Rules and values of the Model Context Protocol: nothing in here waits, reads a clock or does I/O."""
