"""`rdc unite`: two directories that both change are brought together; rdc.cli and rdc.library use it.

`rows` has what both sides are described in; `renames` and `plan` decide without I/O, and `conflicts` as the
user says. `describe` lists both trees. `ancestor_file` and `state` keep what both sides last had in common,
`steps` does the steps, and `run` is one run from the locks to the new ancestor. `report` and `command` are
the verb.
"""
