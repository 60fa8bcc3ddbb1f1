"""The service: HTTP over a Unix socket in front of one engine."""
