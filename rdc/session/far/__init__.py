"""Other machines: how they are dialled, how their errors read, and the relay between two of them (RELAY.md).

`far_end` beside this folder and `rdc.watching` use it.
"""
