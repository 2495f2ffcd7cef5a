"""Ways to move bytes between the two ends of a session; a transport knows nothing of what they mean."""
