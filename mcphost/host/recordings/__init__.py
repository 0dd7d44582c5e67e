"""Recordings: files of traffic read as sessions of exchanges, whichever era they are of."""
