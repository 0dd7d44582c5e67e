"""Where tokens and client registrations are kept."""
