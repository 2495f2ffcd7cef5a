"""The wire protocol without I/O: bytes in, messages out, and back; PROTOCOL.md is the specification.

rdc.session.runtime runs a conversation over rdc.protocol.connection.Connection.
"""
