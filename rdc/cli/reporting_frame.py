"""Context managers for verbs that report events: of mistakes in the command line, and of the job's end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from rdc.cli.environment import OutputClosedError
from rdc.errors import ExitCode, RdcError
from rdc.typed import Protocol

__all__ = ["Output", "reporting", "reporting_usage"]


class Output(Protocol):
    """The part of an output that `reporting` uses."""

    def fail(self, error: RdcError) -> None:
        """Reports the error that ends the job."""

    def close(self) -> None:
        """Ends the output."""


@contextlib.contextmanager
def reporting_usage(words: Sequence[str], json_output: Callable[[], Output]) -> Iterator[None]:
    """Reports an RdcError of the block as an event, too, if `words` ask for events, and raises it again.

    The block reads the words, so nothing else knows yet which output they ask for.
    """
    try:
        yield
    except RdcError as error:
        if "--json" in words:
            json_output().fail(error)
        raise


@contextlib.contextmanager
def reporting(output: Output) -> Iterator[None]:
    """Reports an exception of the block to `output`, raises it again, and closes `output` at the end.

    OutputClosedError is not reported, because the reader of the output has left.
    """
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
    except Exception as error:  # the reader of events must see every failure
        output.fail(RdcError(f"internal error: {type(error).__name__}: {error}", code=ExitCode.USAGE))
        raise
    finally:
        output.close()
