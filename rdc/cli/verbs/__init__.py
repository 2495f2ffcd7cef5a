"""The verbs, one module each. A module reads its options, runs the job and shows the result.

rdc.cli.verb loads the module that a command line names.
"""
