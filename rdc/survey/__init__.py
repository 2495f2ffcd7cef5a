"""What trees hold: what deduplication would save, which files and folders are alike; nothing is changed."""
