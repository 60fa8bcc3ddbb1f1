"""The service's client: HTTP over its Unix socket, with nothing that is slow to import."""
