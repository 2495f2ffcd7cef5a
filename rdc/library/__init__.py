"""The functions of `import rdc` that run a whole job. They check their arguments; the verbs call them.

`sync` and `watch` have modules of their own layers: rdc.session.sync and rdc.watching.watch.
"""
