"""Storage that makes one wait."""
