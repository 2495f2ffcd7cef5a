"""From bytes to chunks: parameters, the streaming chunker, chunk digests. Pure: spans in, chunks out."""
