"""System calls, errors, names and descriptors. Every other room of rdc.files builds on it."""
