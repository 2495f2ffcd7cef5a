"""The index of traits and the pairs of similar files. rdc.kernel exports them to rdc.similarity."""
