"""The shapes in which hosts write servers down: `HostDialect` describes one, `entries` reads what is common to all."""
