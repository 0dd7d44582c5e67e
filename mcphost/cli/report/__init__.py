"""What ``mcphost report`` gathers for a bug report: names, versions and findings, and no value of the configuration."""
