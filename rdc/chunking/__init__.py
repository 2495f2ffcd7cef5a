"""From bytes to chunks: parameters, the streaming chunker, and chunk digests. No I/O."""
