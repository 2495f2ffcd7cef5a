"""The ways in which files arrive: whole, by delta, in bundles, or as copies of equal contents.

rdc.session.applying chooses one for each file.
"""
