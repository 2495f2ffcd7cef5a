"""Renames and copies: new files whose content the destination already has under another name.

rdc.session.applying tries them before it fetches a new file.
"""
