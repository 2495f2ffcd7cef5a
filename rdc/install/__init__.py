"""Installs rdc in a private directory of another machine, over ssh."""
