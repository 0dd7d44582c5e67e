"""What ``mcphost doctor`` looks at: each module returns findings, and changes nothing."""
