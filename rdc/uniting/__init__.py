"""`rdc unite`: two directories that both change are brought together; rdc.cli and rdc.library use it.

`rows` has what both sides are described in; `renames` and `plan` decide without I/O, and `conflicts` as the
user says. `pair_rules` says what takes part, `describe` lists both trees, and `guards` stop a run before its
first step. `attributes` reads and sets extended attributes and ACLs where they take part. `ancestor_file` and
`state` keep what both sides last had in common, and `steps` does the steps. `run` is one run on one machine,
from the locks to the new ancestor, and `deciding` what it shares with a run between two: there `remote` is
the side that dials, after its `meeting`, `far_side` the other one, `pages` what both do alike, and
`exchanged` what they tell each other. `report` and `command` are the verb, and `registry` lists a user's
pairs.
"""
