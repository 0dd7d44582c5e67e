"""One agent, spoken to as its server: the gate's rules, and the socket between gates and the running screen."""
