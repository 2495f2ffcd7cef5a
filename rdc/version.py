"""The version of rdc, for `rdc --version` and the greeting of a session."""

__version__ = "0.1.0"
