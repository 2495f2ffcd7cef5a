"""Features of texts: shingles of words or characters, and bigrams of URLs."""
