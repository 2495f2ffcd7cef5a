"""The signal module as a start uses it: its functions and numbers, without its enumerations."""

from __future__ import annotations

import signal
import subprocess
import sys


def test_it_is_signal_where_that_is_loaded() -> None:
    from rdc.lean import signals

    assert signals.signal is signal


def test_alone_it_loads_no_enumerations_and_has_the_same_functions_and_numbers() -> None:
    script = """
import sys
from rdc.lean.signals import signal
assert not {"enum", "signal"} & set(sys.modules)
caught = []
before = signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
assert before == signal.SIG_DFL
signal.raise_signal(signal.SIGUSR1)
assert caught == [signal.SIGUSR1]
signal.signal(signal.SIGUSR1, before)
assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
import signal as whole
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGWINCH", "SIGURG", "SIG_IGN", "SIG_DFL"):
    assert getattr(whole, name) == getattr(signal, name), name
for name in ("siginterrupt", "default_int_handler"):
    assert getattr(whole, name) == getattr(signal, name), name
"""
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
