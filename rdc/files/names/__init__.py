"""Other names of files: hard links, renames, and blocks shared with another file.

rdc.session.applying and rdc.instances use it.
"""
