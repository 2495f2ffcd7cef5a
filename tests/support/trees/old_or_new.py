"""The promise under every kill: each path at the destination is wholly as before or wholly as wanted."""

from __future__ import annotations

from rdc.files.replace.replacement import KEEP_BYTES
from tests.support.trees.trees import File, Link, Node, Tree, litter

__all__ = ["check_old_or_new", "worth_keeping"]


def worth_keeping(node: Node) -> bool:
    """Return whether an interrupted run may leave this as a temporary, for the next one to go on from."""
    return isinstance(node, File) and len(node.content) >= KEEP_BYTES


def check_old_or_new(found: Tree, held: Tree, wanted: Tree, *, killed: bool) -> Tree:
    """`found` without temporaries: who was killed may leave any, others only what is worth taking up again.

    Directories get their own metadata last, so of these only their being there counts. Mode and mtime of a
    file whose content stays are set one after the other.
    """
    temporaries = litter(found)
    assert killed or all(worth_keeping(found[path]) for path in temporaries), temporaries
    rest = {path: node for path, node in found.items() if path not in temporaries}
    for path in rest.keys() | held.keys() | wanted.keys():
        node, old, new = rest.get(path), held.get(path), wanted.get(path)
        assert type(node) in {type(old), type(new)}, (path, node)
        if isinstance(node, Link):
            assert node in (old, new), (path, node)
        elif isinstance(node, File) and node not in (old, new):
            assert isinstance(old, File) and isinstance(new, File), (path, node)
            assert node.content == old.content == new.content, (path, node)
            assert {node.mode, node.mtime_ns} <= {old.mode, new.mode, old.mtime_ns, new.mtime_ns}, (
                path,
                node,
            )
    return rest
