"""Everything that passed over every wire: kept, read, paired, searched, written to a file, and sent again."""
