"""An Environment whose streams are buffers and whose clock is set by hand."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from rdc.cli.environment import Environment


@dataclass
class FakeClock:
    now: float = 0.0
    step: float = 0.0
    """Seconds that pass at each look."""

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@dataclass
class FakeProcess:
    """A process that never runs: pass on its `environment`, and look at `out` and `err`."""

    stdin: bytes = b""
    environ: dict[str, str] = field(default_factory=dict)
    terminal: bool = False
    out_is_terminal: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    stdout: io.StringIO = field(default_factory=io.StringIO)
    stderr: io.StringIO = field(default_factory=io.StringIO)

    @property
    def environment(self) -> Environment:
        return Environment(
            stdin=io.BytesIO(self.stdin),
            stdout=self.stdout,
            stderr=self.stderr,
            environ=self.environ,
            stdout_is_terminal=self.out_is_terminal,
            stderr_is_terminal=self.terminal,
            clock=self.clock,
        )

    @property
    def out(self) -> str:
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()


class BrokenStream(io.StringIO):
    """A stream whose every write fails."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str, /) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error
