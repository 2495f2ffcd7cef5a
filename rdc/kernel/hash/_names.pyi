"""BLAKE3 of many inputs in C. Only rdc.kernel.blake3_many imports it, which documents it."""

from typing_extensions import Buffer

def usable() -> tuple[str, ...]:
    """The variants that this CPU can run, fastest first; none where only the package blake3 is left."""

def name_inputs(inputs: list[Buffer], variant: str, /) -> bytes: ...
def name_parts(data: Buffer, sizes: Buffer, key: bytes | None, variant: str, /) -> bytes: ...
