"""The frame of the verbs that show a job as it runs: however it ends, its output is told, and closed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rdc.cli.environment import OutputClosedError
from rdc.errors import ExitCode, RdcError
from rdc.typed import Protocol

__all__ = ["Output", "told"]


class Output(Protocol):
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def told(output: Output) -> Iterator[None]:
    """Tells `output` of whatever ends the block but its last line, and passes it on. Nobody is told that they
    have stopped reading."""
    try:
        yield
    except OutputClosedError:
        raise
    except RdcError as error:
        output.fail(error)
        raise
    except KeyboardInterrupt:
        output.fail(RdcError("interrupted", code=ExitCode.INTERRUPTED))
        raise
    except Exception as error:  # whatever it is, the reader of events hears of it; it goes on as it came
        output.fail(RdcError(f"internal error: {type(error).__name__}: {error}", code=ExitCode.USAGE))
        raise
    finally:
        output.close()
