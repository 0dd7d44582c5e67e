"""Diagnosis for ``mcphost doctor`` and ``mcphost report``: checks return findings, and change nothing."""
