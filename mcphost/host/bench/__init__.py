"""Measures how fast a server answers, and compares it with another or with itself of before."""
