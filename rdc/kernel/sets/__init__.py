"""What pairs of sets have in common, counted."""
