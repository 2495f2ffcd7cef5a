"""The encoding of the stream: blocks, compression, frames, columns, codecs of fields and of messages.

rdc.protocol.messages declares messages with it; rdc.protocol.connection reads and writes the stream with it.
"""
