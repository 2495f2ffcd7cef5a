"""The side that is written: it compares the two trees and drives the session.

rdc.session.sync_run and rdc.session.serve start its conversation.
"""
