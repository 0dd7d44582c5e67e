"""The list of servers, a server's card, and reloading the configuration."""
