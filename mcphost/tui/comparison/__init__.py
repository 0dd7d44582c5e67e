"""Two servers, or one in both eras, side by side."""
