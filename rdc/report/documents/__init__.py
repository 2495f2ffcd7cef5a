"""Near-duplicate documents as text, JSON events, HTML page and JSON lines."""
