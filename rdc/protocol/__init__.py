"""The wire protocol without I/O: bytes in, messages out, and back; PROTOCOL.md is the specification."""
