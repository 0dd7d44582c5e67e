"""The dialog that chooses the roots a server may know."""
