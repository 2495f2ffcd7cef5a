"""What tests of stores share: making them, and the reader that knows nothing of rdc."""
