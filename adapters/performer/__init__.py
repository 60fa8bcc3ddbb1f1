"""Doing what the domain asks for: look, act, look again, and report what was seen.

Performing twice is performing once: every effect first looks whether the world is already as it should be.
"""
