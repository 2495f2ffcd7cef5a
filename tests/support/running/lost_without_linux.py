"""The features that are lost where the kernel has none of Linux's own calls, and the tests of these features.

A pytest plugin that leaves these tests out; scripts/soak without_linux uses it.
tests/end_to_end/systems/test_without_linux.py holds that losses are named and harmless.
"""

from __future__ import annotations

import errno
import os

import pytest

__all__ = ["LOST"]

LOST: dict[str, tuple[str, ...]] = {
    "Leases tell who writes. Without them dupes removes nothing, and no hard links are made or undone.": (
        "cli/test_dedupe.py",
        "cli/test_descriptors.py::test_a_second_run_leaves_no_descriptor_open",
        "cli/test_result_files.py::test_logs_and_journals_do_not_go_through_links_of_others",
        "files/base/test_descriptor_limit.py::test_hard_links_keep_to_a_low_limit",
        "files/names/test_hard_link.py",
        "files/names/test_hard_link_refused.py",
        "files/names/test_leased_file.py",
        "files/names/test_leased_files.py",
        "files/names/test_move.py",
        "files/names/test_unlink_copy.py",
        "files/test_append_only.py::test_what_exists_stays[a name linked to an equal file]",
        "files/test_append_only.py::test_what_exists_stays[a hard link parted]",
        "duplicates/test_dedupe_images.py",
        "duplicates/test_dedupe_journal.py",
        "duplicates/test_dedupe_kill.py",
        "duplicates/test_dedupe_leftovers.py",
        "duplicates/test_dedupe_race.py",
        "duplicates/test_dedupe_random.py",
        "duplicates/test_dedupe_report.py",
        "duplicates/test_removal.py::test_a_file_open_for_writing_stays",
        "duplicates/test_removal.py::test_copies_that_are_only_compared",
        "duplicates/test_removal.py::test_set_by_set_for_a_person",
        "duplicates/test_removal.py::test_the_first_path_stays_whatever_its_length",
        "duplicates/test_removal.py::test_undo_copies_only_what_was_there",
        "duplicates/test_removal.py::test_undo_overwrites_no_newer_work",
        "duplicates/test_removal_kill.py",
        "duplicates/test_removal_race.py::test_it_stays_and_is_named",
        "duplicates/test_removal_random.py",
        "duplicates/test_chosen_groups.py",
        "duplicates/test_link_originals.py",
        "duplicates/test_removal_order.py::test_the_first_path_stays",
        "duplicates/test_removal_undo.py",
        "cli/test_dupes.py::test_identical_directories_stand_for_their_files",
        "end_to_end/systems/test_without_proc.py::test_what_cannot_be_linked_is_told",
        "library/test_docstrings.py::test_examples_of_docstrings_are_true[dedupe]",
        "end_to_end/failures/test_power_cut.py::test_syncs_are_few",
        "end_to_end/concurrent_changes/test_changing_destination.py::test_nobody_writes_between_the_look_and_the_setting",
        "end_to_end/failures/test_interrupted_dedupe.py",
        "end_to_end/undo/test_kept_size_and_days.py::test_the_verb_takes_journals_of_dedupe",
    ),
    "FIDEDUPERANGE, FICLONERANGE: blocks are not shared. FIEMAP: nobody knows which are.": (
        "end_to_end/reflinks/test_local_clones.py",
        "end_to_end/reflinks/test_shared_versions.py",
        "duplicates/test_share_sources.py",
        "files/names/test_dedupe_range.py",
        "survey/scan/test_scanned_file.py::test_shared_extents_are_counted",
        "survey/scan/test_small_batch.py::test_shared_bytes_of_all_that_were_signed",
    ),
    "renameat2: what was moved at the source is copied, and its names are not exchanged.": (
        "files/names/test_rename.py::test_nothing_is_replaced",
        "files/names/test_rename.py::test_the_same_inode_has_the_new_name",
        "session/test_confined.py::test_a_check_that_is_gone_shows[_rename_at_will",
        "session/trees/test_preserved_metadata.py::test_what_was_moved_is_renamed_there",
        "end_to_end/transfer/test_fuzzy.py::test_a_file_under_another_name_is_not_sent",
        "end_to_end/concurrent_changes/test_changing_destination.py::test_a_moved_file",
        "end_to_end/metadata/test_xattrs_and_acls.py::test_a_file_that_moves_leaves_behind_what_it_is_not_to_have",
        "end_to_end/selection/test_skip_options.py::test_what_moved_does_not_take_the_place_of_a_newer_file",
        "end_to_end/transfer/test_renames.py",
        "end_to_end/transfer/test_rotated_logs.py::test_what_was_moved_here_is_still_renamed",
        "end_to_end/compatibility/test_transcripts.py",
        "end_to_end/undo/test_undo.py::test_a_moved_file_is_moved_back",
        "uniting/test_changes.py::test_a_rename_of_a_file_with_a_common_time_is_checked_by_content[the old",
        "uniting/test_changes.py::test_a_touched_file_below_a_renamed_directory_is_no_edit",
        "uniting/test_changes.py::test_the_same_edit_at_both_sides_is_agreed_also_below_a_renamed_directory",
        "uniting/test_conflicts.py::test_a_kill_after_a_version_got_its_name_moves_nothing_else",
        "uniting/test_guards.py::test_what_was_renamed_is_not_deleted_for_the_guard",
        "uniting/test_impossible_renames.py::test_a_file_with_a_name_more_at_the_other_side_is_copied[one",
        "uniting/test_histories.py::test_attributes_go_as_the_plan_in_memory_says",
        "uniting/test_remote.py::test_edits_below_a_renamed_directory_arrive",
        "uniting/test_run.py::test_an_edit_below_a_renamed_directory_arrives_there",
        "uniting/test_run.py::test_an_edit_of_what_was_just_renamed_is_an_edit",
        "uniting/test_run.py::test_permissions_of_a_directory_that_a_user_set_meanwhile_are_a_change[renamed",
        "uniting/test_merged_texts.py::test_a_text_in_a_renamed_directory_is_merged_where_it_is_now",
        "end_to_end/relay/test_sync.py::test_every_kind_of_change",
        "end_to_end/relay/test_watch.py::test_a_rename_moves_no_content",
        "uniting/test_taking_part.py::test_rules_are_about_paths_as_they_are",
    ),
    "renameat2: for a moment nothing is where a directory takes the place of a file, or a file of one.": (
        "end_to_end/failures/test_power_cut.py::test_each_path_is_old_or_new",
        "end_to_end/failures/test_power_cut.py::test_the_recorder_sees_every_call",
        "end_to_end/failures/test_power_cut.py::test_a_sync_that_is_left_out_is_found",
        "end_to_end/failures/test_power_cut.py::test_what_was_told_lasts",
        "end_to_end/metadata/test_exposure.py::test_every_moment_of_a_turn",
        "end_to_end/failures/test_power_cut.py::test_without_fsync_only_a_kill_leaves_old_or_new",
        "end_to_end/failures/test_kill.py::test_a_kill_before_every_step",
        "end_to_end/options/test_alternate_directories.py::test_a_kill_before_every_step",
        "end_to_end/concurrent_changes/test_changing_destination.py::test_a_directory_that_somebody_makes_where_one_is_to_be",
    ),
    "renameat2: an edit in the instant before a rename, which no look notices, goes with the old file.": (
        "end_to_end/concurrent_changes/test_edits_at_every_step.py::test_an_edit_before_a_rename[write_secretly",
    ),
    "renameat2: a new symlink has two names for a moment, and in memory each takes an inode.": (
        "end_to_end/deletion/test_withheld_message.py::test_a_full_destination[-inodes]",
        "end_to_end/deletion/test_withheld_message.py::test_a_full_destination[whole-inodes]",
        "end_to_end/deletion/test_withheld_message.py::test_a_full_destination[checksum-inodes]",
    ),
    "inotify: what is watched is read at intervals, and events come late.": (
        "end_to_end/metadata/test_set_id_bits.py::test_a_turn_of_a_watch_brings_none",
        "end_to_end/systems/test_reserved_names.py::test_what_others_planted_stays_as_it_is",
        "end_to_end/watch",
        "uniting/test_sentry.py::test_the_bell_is_that_of_the_events",
        "watching",
    ),
    "fallocate: long files may lie in more extents, and a file written in place gets no new holes.": (
        "files/replace/test_replacement.py::test_copying_and_reading_back",
        "files/test_faults.py",
        "end_to_end/writing/test_holes.py::test_a_file_larger_than_the_free_space_arrives",
        "end_to_end/writing/test_inplace.py::test_holes",
        "end_to_end/writing/test_sparse.py::test_what_is_written_again_has_holes_too",
        "session/transfer/test_way_choice.py::test_small_files_with_holes_keep_them_whole_and_large_ones_by_delta",
        "survey/scan/test_scanner.py::test_a_batch_of_few_files_may_be_larger",
        "survey/scan/test_small_batch.py::test_the_report_is_that_of_files_read_singly",
    ),
    "syncfs: many files are made durable one by one.": (
        "files/replace/test_commit_group.py::test_content_is_synced_before_any_rename_and_directories_after",
    ),
    "F_SETPIPE_SZ: pipes keep their size.": (
        "transport/test_transport.py::test_pipes_are_enlarged_and_left_blocking",
    ),
    "pidfd_open: the end of a child is looked for again and again.": (
        "transport/test_transport.py::test_a_wait_for_a_child_is_woken_and_does_not_look_again",
    ),
    "memfd_create: the daemon needs a directory for temporary files.": (
        "daemon/test_systemd_unit.py::test_a_daemon_works_where_all_but_its_modules_is_read_only",
    ),
    "Without openat2 a path that is not plain names is refused. rdc itself passes none.": (
        "files/bulk/test_read_many.py::test_nothing_leads_out_of_the_tree",
    ),
    "Pages show what rdc does with all calls.": (
        "docs/test_manual_examples.py",
        "docs/test_newcomer.py::test_the_readme_is_enough",
    ),
    "Other programs, or the test itself, need what Linux alone has.": (
        "cli/test_manual.py::test_fish_offers_what_fits",
        "daemon/test_event_loop.py",
        "daemon/test_systemd_unit.py::test_systemd_takes_the_unit",
        "daemon/test_systemd_unit.py::test_the_unit_leaves_little_to_attack",
        "docs/test_manual_commands.py::test_units_are_taken_by_systemd",
        "report/test_browser.py",
        "cluster/test_engines.py::test_a_cluster_writes_the_document_of_one_scan[ray:local]",
        "cluster/test_object_engines.py",
        "docs/test_manual_build.py::test_the_search_works_without_a_server",
        "end_to_end/reflinks/test_power_cut_while_cloning.py::test_a_power_cut",
    ),
}
"""By feature that is lost: the beginnings of the names of its tests, below tests/."""


def pytest_configure() -> None:
    try:
        os.close(os.memfd_create("refused"))
    except OSError as error:
        if error.errno == errno.ENOSYS:
            return
    raise pytest.UsageError("nothing is refused here: tests.support.running.refused_calls does that")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lost = [item for item in items if _is_lost(item.nodeid)]
    if lost:
        config.hook.pytest_deselected(items=lost)
        items[:] = [item for item in items if item not in set(lost)]


def _is_lost(name: str) -> bool:
    return any(
        name.startswith(f"tests/{beginning}")
        and (beginning.find("[") > 0 or name[len(f"tests/{beginning}") :][:1] in {"", "[", ":", "/"})
        for beginnings in LOST.values()
        for beginning in beginnings
    )
