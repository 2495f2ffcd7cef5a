"""The counters of a scan, in bounded memory: chunks, locations, holes, compression.

rdc.survey.scan fills them, rdc.survey.parts adds them up.
"""
