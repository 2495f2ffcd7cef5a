"""Syncs through a remote shell: a real ssh, and remote programs that are not rdc."""
