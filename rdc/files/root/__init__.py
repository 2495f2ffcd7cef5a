"""Confined access to one tree: every path is reached from a descriptor of its top, never through a link.

Whatever reads or writes a tree does so through rdc.files.root.root.Root.
"""
