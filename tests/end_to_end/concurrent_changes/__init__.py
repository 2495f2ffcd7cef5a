"""Other programs write at either end while a sync runs."""
