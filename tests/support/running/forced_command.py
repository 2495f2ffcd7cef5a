"""`rdc serve --stdio --root=DIR` as the forced command of an ssh key."""

from __future__ import annotations

from pathlib import Path

from tests.support.children.far_process import ForcedCommand


def forced(place: Path, *options: str) -> str:
    """Write a remote shell that ignores the client's command, like sshd with a forced command."""
    environ = {"RDC_CATALOG": f"{place}/catalog", "RDC_OWNER": "yes"}
    return ForcedCommand(("serve", "--stdio", *options), environ, f"{place}/outside").write(place / "forced")
