"""What to do, decided without doing it: comparison of listings, descent over signature trees. Pure."""
