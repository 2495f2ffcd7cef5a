"""Where rdc's own files of a user are, by the XDG base directory specification
(https://specifications.freedesktop.org/basedir), and at the places of macOS where nothing else is set."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cache_directory", "config_directory", "state_directory"]


def config_directory(environ: Mapping[str, str]) -> str | None:
    """$XDG_CONFIG_HOME/rdc, or $HOME/.config/rdc; None where neither is set."""
    # Never the password file's home: under another user's rights, settings must not come from a home that
    # was not asked for.
    return _chosen(environ, "XDG_CONFIG_HOME") or _below(environ.get("HOME", ""), ".config")


def cache_directory(environ: Mapping[str, str]) -> str | None:
    """What can be made again: $XDG_CACHE_HOME/rdc, or .cache/rdc at home; None where there is no home."""
    places = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return _chosen(environ, "XDG_CACHE_HOME") or _below(_home(environ), places)


def state_directory(environ: Mapping[str, str]) -> str | None:
    """What outlasts a run: $XDG_STATE_HOME/rdc, or $HOME/.local/state/rdc; None where neither is set."""
    places = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return _chosen(environ, "XDG_STATE_HOME") or _below(environ.get("HOME", ""), places)


def _chosen(environ: Mapping[str, str], variable: str) -> str | None:
    """The specification: a relative path is to be ignored."""
    return _below(environ.get(variable, ""), "")


def _below(base: str, places: str) -> str | None:
    return os.path.join(base, places, "rdc") if os.path.isabs(base) else None


def _home(environ: Mapping[str, str]) -> str:
    """HOME, or what the password file says; "" where neither does."""
    home = environ.get("HOME")
    if home is None:
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    return home
