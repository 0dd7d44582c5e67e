"""Widgets and screens that every feature uses."""
