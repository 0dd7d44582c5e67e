"""The wires: each turns a request into its response, over one kind of connection, and decides nothing."""
