"""The history of calls across runs: values, the file, and the service that writes and reads it in a thread."""
