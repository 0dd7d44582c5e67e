"""Keeps tokens and client registrations in the keychain, or in memory without one."""
