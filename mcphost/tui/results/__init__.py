"""Results of calls and contents of resources, block by block."""
