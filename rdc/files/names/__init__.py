"""Changes of names: in a sync (entry_names, backups), and of duplicates, which lose them (name_change) and
get them back (return_name). Also blocks shared with another file.

rdc.session.destination and rdc.duplicates use it.
"""
