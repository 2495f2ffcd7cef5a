"""scripts/try_bare, as far as it goes without a root of its own."""

from __future__ import annotations

import re
import socket
import subprocess

from tests.support.project_paths import TOP

SCRIPT = (TOP / "scripts" / "try_bare").read_text()


def test_its_sshd_takes_a_port_that_is_free() -> None:
    """Two runs at once, or a run beside another server, do not meet."""
    function = re.search(r"(?ms)^free_port\(\) \{.*?^\}$", SCRIPT)
    assert function is not None
    ports = [
        int(
            subprocess.run(["sh", "-ec", f"{function[0]}\nfree_port"], capture_output=True, check=True).stdout
        )
        for _ in range(2)
    ]
    for port in ports:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", port))
    assert re.findall(r"(?i)port=(\d+)", SCRIPT) == []
