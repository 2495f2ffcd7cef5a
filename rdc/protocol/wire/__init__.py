"""The encoding of the stream: blocks, compression, frames, columns and codecs of fields.

rdc.protocol.messages declares messages with it; rdc.protocol.rules reads and writes the stream with it.
"""
