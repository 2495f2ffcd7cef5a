"""Runs conversations: commands, bytes between connection and transport, signs of life, limits, compression.

rdc.session.sync, rdc.session.serve and rdc.watch start conversations here.
"""
