"""One read of the data, counted at several granularities: what deduplication and compression would save."""
