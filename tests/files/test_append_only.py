"""Below an append-only root new entries are made, and no other entry is changed, renamed or deleted."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rdc.files
from rdc.errors import ExitCode, FileError
from rdc.files.base.metadata import ANYTHING
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.bulk.open_many import FAILED, OpenedFiles
from rdc.files.bulk.small_files import NewVersions, stage_versions
from rdc.files.facts.file_systems import facts_by_type
from rdc.files.facts.xattrs import write_entry_attributes
from rdc.files.names import name_change
from rdc.files.names.entry_names import Linked, link_file, move_directory, move_file
from rdc.files.names.leased_files import LeasedFile, LeasedFiles, Outcome, Place, Step
from rdc.files.names.return_name import remove_twin, return_displaced
from rdc.files.replace.commit_group import CommitGroup, sweep_temporaries
from rdc.files.replace.replacement import Replacement
from rdc.files.replace.set_metadata_if_unchanged import copy_file, set_metadata_if_unchanged
from rdc.files.root.policies import MadeEntries, rename_to_free_name
from rdc.files.root.root import Root, WritePolicy
from rdc.model.entries import IdentityColumns, Kind, Metadata
from rdc.model.preserved import AttributeKinds
from tests.support.trees.saved_files import unlink_copy
from tests.support.trees.trees import Link, tree, write_tree
from tests.support.wire.hostile_requests import snapshot

WANTED = Metadata(0o600, 10**18, 4242, 4242)
TEMPORARY = b".rdc-0123456789abcdef.tmp"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    there: dict[str, Link | bytes] = {"file": b"held", "link": Link(b"target"), "full/file": b"held"}
    place = write_tree(tmp_path / "location", tree({**there, os.fsdecode(TEMPORARY): b"left"}))
    (place / "empty").mkdir()
    os.link(place / "file", place / "twin")
    return place


@pytest.fixture
def root(place: Path) -> Iterator[Root]:
    root = Root(os.open(place, os.O_PATH | os.O_DIRECTORY), b"served", writes=WritePolicy(made=MadeEntries()))
    yield root
    root.release()


def committed(root: Root, path: bytes, expected: Any, owner: bool = False) -> None:
    done: list[bytes] = []
    with CommitGroup(root, fsync=False, on_commit=done.append) as group, Replacement(root, path) as new:
        new.write(b"new")
        group.add(new, path, WANTED, owner, expected)


def swapped(root: Root, path: bytes) -> None:
    with LeasedFile(root, b"full/file") as kept, LeasedFile(root, path) as old:
        name_change.Link(root, path, old, kept)


def test_names_are_not_taken_together(root: Root, place: Path) -> None:
    """The caller repeats each alone, and its refusal names it."""
    before = sorted(os.listdir(place))
    directories = [root.directory(b""), root.directory(b"full")]
    places = [
        Place(root, b"file", directories[0], b"file"),
        Place(root, b"full/file", directories[1], b"file"),
    ]
    step = Step(directories[0], b"file", b"beside", 0, 1, directories[1], b"file", first=True)
    for exchange in (False, True):
        with LeasedFiles(places) as leased:
            assert leased.displace([step], exchange=exchange) == [Outcome.UNTOUCHED]
            assert leased.remove([step], exchange=exchange) == [Outcome.UNTOUCHED]
    assert sorted(os.listdir(place)) == before


CHANGES: dict[str, Callable[[Root], object]] = {
    "a commit over a file": lambda root: committed(root, b"file", root.identity(b"file")),
    "a commit over one of two names": lambda root: committed(root, b"twin", root.identity(b"twin")),
    "a commit over a link": lambda root: committed(root, b"link", ANYTHING),
    "a commit over an empty directory": lambda root: committed(root, b"empty", root.identity(b"empty")),
    "a commit where something came meanwhile": lambda root: committed(root, b"file", None),
    "a directory over a file": lambda root: root.replace_with_directory(b"file"),
    "a link over a file": lambda root: root.replace_symlink(b"file", b"x"),
    "a link over a link": lambda root: root.replace_symlink(b"link", b"x"),
    "a link over an empty directory": lambda root: root.replace_symlink(b"empty", b"x"),
    "a link where something came meanwhile": lambda root: root.replace_symlink(b"file", b"x", expected=None),
    "a file's removal": lambda root: root.remove(b"file"),
    "a directory's removal": lambda root: root.remove(b"empty", directory=True),
    "a file's metadata": lambda root: root.set_metadata(b"file", Kind.FILE, WANTED, owner=False),
    "a directory's metadata": lambda root: root.set_metadata(b"full", Kind.DIRECTORY, WANTED, owner=False),
    "the root's metadata": lambda root: root.set_metadata(b"", Kind.DIRECTORY, WANTED, owner=False),
    "a link's metadata": lambda root: root.set_metadata(b"link", Kind.SYMLINK, WANTED, owner=False),
    "metadata of a compared file": lambda root: set_metadata_if_unchanged(
        root, b"file", WANTED, owner=False, expected=root.identity(b"file")
    ),
    "a copy in a name's place": lambda root: copy_file(root, b"twin", root.identity(b"twin")),
    "a file's move": lambda root: move_file(
        root, b"file", b"new", root.identity(b"file"), WANTED, owner=False
    ),
    "a directory narrowed": lambda root: root.narrow_directory(b"full", WANTED, owner=False),
    "a directory's move": lambda root: move_directory(root, b"full", b"new"),
    "a hard link over a file": lambda root: link_file(
        root, b"full/file", b"file", root.identity(b"full/file")
    ),
    "a hard link over an empty directory": lambda root: link_file(
        root, b"file", b"empty", root.identity(b"file")
    ),
    "attributes": lambda root: write_entry_attributes(
        root, b"file", Kind.FILE, ((b"user.x", b"1"),), AttributeKinds.USER, 0o644
    ),
    "a name linked to an equal file": lambda root: swapped(root, b"file"),
    "a hard link parted": lambda root: unlink_copy(root, b"twin", root.identity(b"twin").inode),
    "a file given its name back": lambda root: return_displaced(root, b"new", b"file", b""),
    "a twin's removal": lambda root: remove_twin(root, b"full/file", root, b"file"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_exists_stays(change: Callable[[Root], object], root: Root, place: Path) -> None:
    before = snapshot(place)
    with pytest.raises(FileError, match=r"served.*\(append-only\)") as refused:
        change(root)
    assert refused.value.code is ExitCode.PARTIAL
    after = snapshot(place)
    # A temporary that was made and removed leaves its trace in the times of the directory.
    assert {path: found for path, found in after.items() if path} == {
        path: found for path, found in before.items() if path
    }
    unmoved = ("mode", "uid", "gid", "attributes", "inode", "links")
    assert all(getattr(after[""], name) == getattr(before[""], name) for name in unmoved)


def test_what_has_no_error_does_nothing(root: Root, place: Path) -> None:
    """These leave to others what they do not do."""
    before = snapshot(place)
    assert sweep_temporaries(root, b"", [TEMPORARY]) == 0
    facts_by_type(root)
    versions = NewVersions(
        [b"file"], IdentityColumns([root.identity(b"file")]), *(bytes(size) for size in (2, 8, 8, 4, 4))
    )
    assert stage_versions(root, versions, b"", owner=False) is None

    class Columns:
        modes, mtimes, uids, gids = bytes(2), bytes(8), bytes(4), bytes(4)

    with OpenedFiles(root, b"full/file\0") as opened:
        assert opened.set_metadata([0], [0], Columns(), owner=False) == bytes([FAILED])
    root.make_directory(b"full")
    root.set_metadata(b"file", Kind.FILE, root.metadata(b"file"), owner=True)
    assert snapshot(place) == before


def test_what_is_made_may_be_finished(root: Root, place: Path) -> None:
    before = snapshot(place)
    root.make_directory(b"new", 0o700)
    committed(root, b"new/file", None)
    root.replace_symlink(b"new/link", b"target", expected=None)
    assert link_file(root, b"file", b"new/name", root.identity(b"file")) is Linked.DONE
    for path, kind in ((b"new/file", Kind.FILE), (b"new/link", Kind.SYMLINK), (b"new", Kind.DIRECTORY)):
        assert root.may_change(path)
        root.set_metadata(path, kind, WANTED, owner=False)
        assert root.metadata(path).mtime_ns == WANTED.mtime_ns
    write_entry_attributes(
        root, b"new/file", Kind.FILE, ((b"user.x", b"1"),), AttributeKinds.USER, WANTED.mode
    )
    # A new name makes no new file of it.
    assert not root.may_change(b"new/name")
    after = snapshot(place)
    assert after.keys() - before.keys() == {"new", "new/file", "new/link", "new/name"}
    assert all(after[name] == before[name] for name in before.keys() - {"", "file", "twin"})
    assert after["file"].links == 3


def test_what_was_made_by_another_root_is_not_new(root: Root, place: Path) -> None:
    root.make_directory(b"new")
    policy = WritePolicy(made=MadeEntries())
    other = Root(os.open(place, os.O_PATH | os.O_DIRECTORY), b"served", writes=policy)
    with pytest.raises(FileError, match="append-only"):
        other.set_metadata(b"new", Kind.DIRECTORY, WANTED, owner=False)


def test_a_name_that_is_taken_meanwhile(root: Root, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is there when a link is decided on; of the other file only the ctime tells of it."""
    monkeypatch.setattr("rdc.files.names.entry_names._is_taken", lambda *_: False)
    before = snapshot(place)
    with pytest.raises(FileError, match="append-only"):
        link_file(root, b"full/file", b"file", root.identity(b"full/file"))
    after = snapshot(place)
    assert after["file"] == before["file"]
    assert after["full/file"] == replace(before["full/file"], ctime_ns=after["full/file"].ctime_ns)
    assert after.keys() == before.keys()


@pytest.mark.parametrize("promised", [True, False], ids=["renamed", "linked"])
def test_a_free_name(promised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rename(2) does not promise to replace nothing."""

    def refused(*_: object) -> None:
        raise OSError(22, "")

    monkeypatch.setattr(
        "rdc.files.base.taking_names.rename_no_replace_between",
        rename_no_replace_between if promised else refused,
    )
    directory = os.open(tmp_path, os.O_PATH)
    for name in ("taken", "temporary"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("temporary", "link"):
        with pytest.raises(FileExistsError):
            rename_to_free_name(os.fsencode(name), b"taken", directory)
        rename_to_free_name(os.fsencode(name), b"free" + os.fsencode(name), directory)
    os.close(directory)
    assert sorted(os.listdir(tmp_path)) == ["freelink", "freetemporary", "taken"]
    assert (tmp_path / "taken").read_text() == "taken"
    assert os.readlink(tmp_path / "freelink") == "nowhere"


# What changes entries is known, each with what keeps it from doing so below an append-only root

OF_OS = (
    "chmod chown lchown link mkdir mknod remove removedirs removexattr rename renames replace rmdir setxattr"
)
OF_OS += " symlink truncate unlink utime fchmod fchown mkfifo lchmod write writev pwrite pwritev ftruncate"
OF_OS += " copy_file_range sendfile splice posix_fallocate"
OF_RDC = (
    "chmod_no_follow rename_exchange rename_no_replace rename_no_replace_between stage_small rename_small"
)
OF_RDC += " set_metadata_of_files directory_over_file file_over_directory put_back set_on_name set_on_found"
OF_RDC += " narrow_name set_mode_on_name take_acl take_acl_of shed_acl shed_acls"
OF_RDC += " set_on_descriptor write_attributes _unlink _rmdir dedupe_range"
OF_RDC += " hold_free_name take_free_name replace_name"
OF_RDC += " fallocate_keep_size clone_range punch_hole set_access_time displace_files remove_displaced"

OF_CHANGE = "Delete._give_back Delete._rename Move.place Move._give_back Move.discard Move._rename"
OF_CHANGE += " NameChange.finish _Exchange._rename _Exchange._give_back _Exchange._unprepare Link._make_link"
OF_CHANGE += " Symlink._make_link"
OF_RETURN = "CopiedReturn.stage CopiedReturn.drop MovedReturn.take OldReturn.take"
OF_RETURN += " Separation._take_with Separation.finish"
_PARTS = ("keep", "remove", "_made")

OF_TRIAL = "_aside _empty _Trial._is_steady _Trial._granularity _Trial._modes _Trial._keeps_owner"
OF_TRIAL += " _Trial._directories _Trial._other_kinds _Trial._keeps_attributes _Trial._honours_no_replace"
OF_TRIAL += " _Trial._links"

CHANGING = {
    # Refused as a whole.
    "root.Root.replace_with_directory": "check_change",
    "root.Root.remove": "check_change",
    "root.Root.replace_symlink": "_rename_symlink",
    "root.Root.replace_node": "_replace",
    "root.Root._replace": "rename_to_free_name",
    "root.Root._rename_over": "rename_to_free_name, in its callers",
    "root.Root.set_metadata": "check_made",
    "root.Root._settle": "check_made",
    "root.Root.narrow_directory": "check_made",
    "replacement.CheckedRename.rename": "rename_to_free_name",
    "set_metadata_if_unchanged._Change.set_by_name": "check_made, in _check",
    "set_metadata_if_unchanged._Change.set_by_descriptor": "check_made, in _check",
    "entry_names.link_file": "rename_to_free_name",
    **dict.fromkeys(["entry_names.move_file", "entry_names.move_directory"], "check_change"),
    "xattrs.write_entry_access_time": "check_made",
    **dict.fromkeys(["xattrs._write", "xattrs._Reached.chmod"], "check_made, in _change"),
    **dict.fromkeys(["small_files.stage_versions", "open_many.OpenedFiles.set_metadata"], "append_only"),
    "commit_group._sweep_one": "append_only, in sweep_temporaries",
    "commit_group._remove_directory": "append_only, in sweep_temporaries",
    **dict.fromkeys(map("return_name.{}".format, ["remove_spare_link", "remove_twin"]), "check_change"),
    **dict.fromkeys(map("return_name.{}".format, OF_RETURN.split()), "check_change, in __init__"),
    "return_name._take": "check_change, in NameReturn",
    **dict.fromkeys(
        map("leased_files.LeasedFiles.{}".format, ["displace", "remove"]), "append_only, in _take"
    ),
    "return_name.SmallCopies.__init__": "append_only, in _is_usual",
    "name_change.seal_like": "our temporary",
    **dict.fromkeys(map("name_change.{}".format, OF_CHANGE.split()), "check_change, in __init__"),
    # Only a name that is free, or an entry that nobody has named yet.
    "root.Root.make_directory": "a free name",
    "policies.rename_to_free_name": "a free name",
    "taking_names.hold_free_name": "a free name",
    "taking_names.take_free_name": "a free name",
    **dict.fromkeys(map("taking_names.{}".format, ["replace_name", "_move_aside"]), "CheckedRename.rename"),
    **dict.fromkeys(map("file_systems.{}".format, OF_TRIAL.split()), "DestinationStorage.before_writing"),
    **dict.fromkeys(["small_files.stage_small", "commit_group.CommitGroup.add_small"], "temporaries"),
    "small_files.StagedFiles.rename": "a free name: of versions nothing is staged",
    "small_files.StagedFiles.drop": "our temporary",
    "replacement.Replacement.seal": "our temporary",
    "replacement.Replacement._create": "our temporary",
    "replacement.Replacement.keep": "our temporary",
    **dict.fromkeys(
        map("replacement.Replacement.{}".format, ["_write_at", "_fill", "_grow"]), "our temporary"
    ),
    "replacement.Replacement.write_zeros": "our temporary",
    "replacement.Replacement._end_hole": "our temporary",
    "replacement.Replacement._punch": "our temporary",
    **dict.fromkeys(["replacement.Reservation._reserve", "cloning.clone_into"], "our temporary"),
    "staged_clones.StagedClones._clone": "a file without a name",
    "replacement.Replacement._copy_some": "our temporary",
    "replacement.Replacement.abandon": "our temporary",
    # Without a root: called by the above alone, which is looked at below.
    "root._unlink_quietly": "Root.replace_symlink, of its temporary",
    "backups.Backups._link": "granted_options, which refuses --backup",
    **dict.fromkeys(map("partial_directory.PartialDirectory.{}".format, _PARTS), "append_only"),
    **dict.fromkeys(
        map("partial_directory.PartsRecord.{}".format, ["write", "remove", "end"]),
        "append_only, in PartialDirectory; deletions and undo are refused",
    ),
    **dict.fromkeys(map("delayed_group.DistantReplacement.{}".format, ["_bring", "_copy"]), "our own"),
    "backups.Backups._copy": "granted_options, which refuses --backup",
    "entry_names.UnchangedRemoval._unlink": "granted_options, which refuses --remove-source-files",
    "overwrite.Overwrite.land": "granted_options, which refuses --inplace and --append",
    "overwrite.Overwrite._set_metadata": "granted_options, which refuses --inplace and --append",
    "overwrite.Overwrite._clear_old": "granted_options, which refuses --inplace and --append",
    "overwrite.Overwrite._share": "granted_options, which refuses --inplace and --append",
    "overwrite.Overwrite._write_by_hand": "granted_options, which refuses --inplace and --append",
    **dict.fromkeys(map("entry_names.{}".format, ["_aside", "_list_in", "_try_in"]), "our temporary"),
    "taking_names.directory_over_file": "Root.replace_with_directory",
    "taking_names.file_over_directory": "Root.replace_symlink, CheckedRename.rename, link_file",
    "taking_names._rmdir_quietly": "directory_over_file",
    "name_change.put_back": "NameChange, Separation",
    "metadata.set_on_descriptor": "Replacement.seal",
    "root.Root.set_on_open": "Replacement.seal, of its temporary",
    **dict.fromkeys(["faked_root.FakedRoot._stand_for", "listing_view._set"], "no Open's"),
    "listing_view.set_faked_on_name": "no Open's",
    "metadata.set_on_found": "set_metadata_if_unchanged",
    "metadata.set_on_name": "Root.set_metadata, Root.replace_symlink, set_metadata_if_unchanged",
    "metadata.narrow_name": "Root.narrow_directory, move_file",
    "metadata.set_mode_on_name": "set_on_name, narrow_name, take_acl",
    "metadata._remove": "take_acl, take_acl_of, shed_acl, shed_acls",
    "metadata.take_acl": "set_metadata_if_unchanged, move_file, shed_acls",
    "metadata.take_acl_of": "set_metadata_if_unchanged",
    "metadata.shed_acls": "a directory that was just made",
    "xattrs.write_attributes": "seal_like, of its copy",
    "leased_files.can_share": "shares nothing",
    # Below no root: what the user names on the command line, and what the kernel is asked.
    "confined_root.ConfinedRoot.open": "the directory that a user named",
    **dict.fromkeys(["output_file._replace", "output_file._publish", "output_file._write_all"], "a report"),
    "output_file.OpenedPath._walk": "the directories of a report or journal",
    "watching.events.Bell.ring": "a pipe of its own",
    **dict.fromkeys(["record_log.RecordLog.append", "record_log.RecordLog.cut"], "a journal"),
    "spool.Spool._write_tail": "a file without a name",
}


def calls() -> dict[str, set[str]]:
    """Functions of rdc that call what changes entries, and what they call; rdc.files without its folder."""
    names = {*OF_OS.split(), *OF_RDC.split()}
    found: dict[str, set[str]] = {}
    package = Path(rdc.files.__file__).parent.parent
    for folder in ("files", "session", "watching", "tree"):
        for path in sorted((package / folder).rglob("*.py")):
            module = path.stem if folder == "files" else f"{folder}.{path.stem}"
            for qualified, function in _functions(ast.parse(path.read_text()), module):
                changing = {name for name in _called(function) if name.rpartition(".")[2] in names}
                changing = {name for name in changing if _changes(name, path.read_text())}
                if changing:
                    found[qualified] = changing
    return found


def _changes(name: str, text: str) -> bool:
    """`name` as a call has it: of os, or one of ours that is imported or defined there."""
    head, _, last = name.rpartition(".")
    if last in OF_RDC.split():
        return head in ("", "_extension")
    return head == "os" or (head == "" and re.search(rf"from os import .*\b{last}\b", text) is not None)


def _functions(top: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Those of modules and classes; functions in functions belong to the outer one."""
    for node in ast.iter_child_nodes(top):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}.{node.name}")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}.{node.name}", node


def _called(function: ast.AST) -> set[str]:
    found = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    # A function that is handed on is called by whom it is handed to.
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            found |= {
                ast.unparse(given) for given in node.args if isinstance(given, (ast.Name, ast.Attribute))
            }
    return found


def test_all_that_changes_entries_is_known() -> None:
    """A new function that does so gets a row here, and a check of its own."""
    found = calls()
    assert found.keys() - CHANGING.keys() == set()
    assert CHANGING.keys() - found.keys() == set()


def test_the_c_parts_that_change_entries_are_known() -> None:
    """Each is behind one of the functions above."""
    changing = re.compile(
        r"\b(f?chmod(?:at)?|l?f?chown(?:at)?|unlink(?:at)?|rmdir|mkdir(?:at)?|link(?:at)?|symlink(?:at)?"
        r"|rename(?:at2?)?|SYS_renameat2|SYS_fchmodat2|f?truncate|futimens|utimensat|f?l?setxattr"
        r"|f?l?removexattr|pwrite|fallocate)\b\(?"
    )
    found: dict[str, set[str]] = {}
    for path in sorted(Path(rdc.files.__file__).parent.rglob("*.[ch]")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", "", path.read_text(), flags=re.DOTALL)
        names = {match[0].rstrip("(") for match in changing.finditer(text)}
        if names:
            found[path.name] = names
    assert found == {
        "write_small.c": {
            *("pwrite", "ftruncate", "fchown", "fchmod", "futimens"),
            *("unlinkat", "linkat", "renameat", "SYS_renameat2"),
        },
        "opened_files.c": {"futimens", "fchown", "fchmod"},
        "leased_files.c": {"linkat", "unlinkat", "SYS_renameat2"},
        "libc_binding.c": found.get("libc_binding.c", set()),
    }
