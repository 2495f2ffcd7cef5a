"""rdc as a service: it decides who may connect and use which module, and runs a process per session.

rdc.cli starts it.
"""
