"""Stand-ins for modules of Python and of packages that are too slow to load at every start.

LEAN.md has what each costs, what it stands for and what it leaves out. Every package of rdc uses them.
"""
