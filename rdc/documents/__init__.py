"""Near-duplicate documents: reads texts, keeps samples and shingles in parts, and finds what is alike."""
