"""Runs conversations: commands, bytes between connection and transport, signs of life, limits, compression.

rdc.session.sync_run, rdc.session.serve and rdc.watching start conversations here.
"""
