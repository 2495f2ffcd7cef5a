"""x86 code: branch displacements made absolute, or masked before a block search.

rdc.kernel exports them to rdc.session.binaries.
"""
