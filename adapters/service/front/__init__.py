"""The front door: sockets, who may come in, how much and how slowly, and HTTP/1.1 itself."""
