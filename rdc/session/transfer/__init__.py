"""The ways in which files arrive: whole, by delta, in bundles, or as copies of equal contents.

`transfers` chooses one for each file that rdc.session.destination found to differ.
"""
