"""Changes entries of the destination: directories, files, links, extended attributes and deletions.

rdc.session.destination calls it for each directory that differs.
"""
