"""rdc's own files: logs, reports and spools.

rdc.catalog, rdc.duplicates and rdc.survey write theirs with it.
"""
