"""Parts: what a search keeps of documents, at rest."""
