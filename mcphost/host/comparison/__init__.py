"""Compares what two servers, or one server in both eras, offer and answer."""
