"""Every message of the protocol, one module per topic; registry.py lists them with their numbers.

Both sides of rdc.session send and receive them. S is the source and D the destination.
"""
