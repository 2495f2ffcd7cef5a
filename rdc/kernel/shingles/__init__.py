"""Features of texts: shingles of words or characters, bigrams of URLs, and the text of HTML pages."""
