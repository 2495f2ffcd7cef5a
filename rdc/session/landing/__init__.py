"""Turns verified content into files: commits, partial files of interrupted runs, progress.

Every way of transfer in rdc.session.transfer and rdc.session.renames ends here.
"""
