"""Reads contents in threads, in order and with bounded memory.

rdc.survey.duplicates and rdc.survey.scan read files with it.
"""
