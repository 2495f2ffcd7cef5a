"""The functions of `import rdc` that run a whole job. They check their arguments; the verbs call them.

`trees` has what works on a tree and its copy. `duplicates`, `scans` and `similar` survey trees. `streams`
takes buffers and open files.
"""
