"""Tool calls from the request to the checked result."""
