"""The source: the side whose files are read. It describes its tree and answers requests about its files.

rdc.session.sync_run and rdc.session.serve start its conversation.
"""
