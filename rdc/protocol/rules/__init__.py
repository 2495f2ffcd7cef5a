"""What may be said when, and what is unanswered: the connection, without I/O.

rdc.session.runtime runs a conversation over rdc.protocol.rules.connection.Connection.
"""
