"""The side that is written: it compares the two trees and drives the session.

rdc.session.sync and rdc.session.serve start its conversation.
"""
