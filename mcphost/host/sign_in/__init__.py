"""Sign-ins, and which account each server uses."""
