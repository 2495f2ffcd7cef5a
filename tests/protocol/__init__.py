"""Tests of rdc.protocol: the wire protocol without I/O."""
