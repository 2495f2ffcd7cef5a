"""All limits that rdc enforces, one module per topic, each limit with its reason.

Every package uses them. Code that reads input checks a length against its limit before it allocates memory.
"""
