"""`rdc check`: beside a slow comparer, what it costs, and what it refuses."""
