"""Which entries a sync deletes, when, and what makes it withhold deletions."""
