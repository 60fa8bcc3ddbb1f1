"""The file system by descriptors: never through a link, never replacing unasked, durable when it returns."""
