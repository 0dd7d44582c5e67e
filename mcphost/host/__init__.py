"""The host: connections, consent, what all servers offer and what they log. No screen in here."""
