"""The specification's types, one module for each feature."""
