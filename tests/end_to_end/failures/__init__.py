"""A sync that is killed, interrupted or cut off, a power failure, and files that fail."""
