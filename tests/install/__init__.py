"""Tests of rdc.install: wheels, the far program, and a real sshd."""
