"""The shared parts of tests of stores: making stores, and the reader that knows nothing of rdc."""
