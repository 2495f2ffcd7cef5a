"""The two trees of a session before their comparison: announced entries, places, digests of files.

Both sides use it: rdc.session.source describes with it, rdc.session.destination compares with it.
"""
