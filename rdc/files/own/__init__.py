"""rdc's own files: logs, reports and spools.

rdc.catalog, rdc.instances and rdc.survey write theirs with it.
"""
