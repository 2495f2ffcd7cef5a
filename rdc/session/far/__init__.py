"""Other machines: how they are dialled, how their errors read, and the relay between two of them (RELAY.md).

rdc.session.sync_run, rdc.session.between_hosts and rdc.watching use it.
"""
