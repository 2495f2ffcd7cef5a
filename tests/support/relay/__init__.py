"""Helpers that run a relay between two hosts: processes of this machine, or threads of this process."""
