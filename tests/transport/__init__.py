"""Tests of rdc.transport: pipes, memory and TLS."""
