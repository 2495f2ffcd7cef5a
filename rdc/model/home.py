"""The directories of rdc's own files, by the XDG base directory specification.

https://specifications.freedesktop.org/basedir; macOS has its own places if no variable is set.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cache_directory", "config_directory", "state_directory"]


def config_directory(environ: Mapping[str, str]) -> str | None:
    """$XDG_CONFIG_HOME/rdc, or $HOME/.config/rdc; None if neither is set."""
    # Never the home of the password file: under another user's rights, settings must not come from an
    # unrequested home.
    return _chosen(environ, "XDG_CONFIG_HOME") or _below(environ.get("HOME", ""), ".config")


def cache_directory(environ: Mapping[str, str]) -> str | None:
    """The directory of data that can be rebuilt: $XDG_CACHE_HOME/rdc, or .cache/rdc at home; None without a
    home."""
    subdirectory = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return _chosen(environ, "XDG_CACHE_HOME") or _below(_home(environ), subdirectory)


def state_directory(environ: Mapping[str, str]) -> str | None:
    """The directory of data that outlasts a run: $XDG_STATE_HOME/rdc, or $HOME/.local/state/rdc; None if
    neither is set."""
    subdirectory = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return _chosen(environ, "XDG_STATE_HOME") or _below(environ.get("HOME", ""), subdirectory)


def _chosen(environ: Mapping[str, str], variable: str) -> str | None:
    """The variable's directory. A relative path is ignored, as specified."""
    return _below(environ.get(variable, ""), "")


def _below(base: str, subdirectory: str) -> str | None:
    return os.path.join(base, subdirectory, "rdc") if os.path.isabs(base) else None


def _home(environ: Mapping[str, str]) -> str:
    """HOME, or the home in the password file; "" without either."""
    home = environ.get("HOME")
    if home is None:
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    return home
