"""The built-in demo server: a lighthouse with every feature of the protocol, without third-party libraries."""
