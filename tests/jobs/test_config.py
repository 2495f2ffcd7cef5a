"""Jobs of the settings file: what a job means as a command line, and every mistake as one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.cli.environment import default_words
from rdc.cli.verb import load_verbs
from rdc.errors import UsageError
from rdc.jobs.config import chosen_jobs, read_jobs
from rdc.jobs.records import Job

PLAIN = '[jobs.photos]\nsource = "/a/"\ndestination = "nas:b/"\n'


def jobs_of(text: str, place: Path) -> dict[str, Job]:
    path = place / "config.toml"
    path.write_text(text)
    return read_jobs(str(path), {"HOME": "/home/me"})


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", ["--", "/a/", "nas:b/"]),
        (
            'exclude = ["*.o", "x/"]\ndelete = true\nkeep-undo = "30d"\nrdcignore = true\noptions = ["-H"]\n',
            [
                *("--exclude=*.o", "--exclude=x/", "--rdcignore", "--delete", "--keep-undo=30d", "-H"),
                *("--", "/a/", "nas:b/"),
            ],
        ),
    ],
)
def test_a_job_is_a_command_line(lines: str, words: list[str], tmp_path: Path) -> None:
    assert jobs_of(PLAIN + lines, tmp_path)["photos"].words == words


def test_paths_of_the_home_directory_are_absolute(tmp_path: Path) -> None:
    text = '[jobs.a]\nsource = ["~/x", "/y"]\ndestination = "~/z"\n'
    assert jobs_of(text, tmp_path)["a"].words[1:] == ["/home/me/x", "/y", "/home/me/z"]


def test_a_store_is_put(tmp_path: Path) -> None:
    text = '[jobs.a]\nkind = "store"\nsource = "/x"\ndestination = "/st"\nname = "x"\n'
    assert jobs_of(text, tmp_path)["a"].words == ["put", "--name=x", "--", "/x", "/st"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN + 'colour = "red"\n', "jobs.photos.colour: there is no such setting"),
        (PLAIN + 'kind = "mirror"\n', "jobs.photos.kind: expected sync, unite, store; found 'mirror'"),
        (PLAIN + 'kind = "unite"\ndelete = true\n', "delete: a job of kind unite has no such setting"),
        (PLAIN + 'name = "x"\n', "name: a job of kind sync has no such setting"),
        (PLAIN + "delete = 1\n", "delete: expected true or false"),
        (PLAIN + 'schedule = "often"\n', "schedule: 'often' is no schedule; expected hourly, daily"),
        (
            PLAIN + 'before = "mount /mnt/x"\n',
            'there is no shell; write a list: before = ["mount", "ARGUMENT", ...]',
        ),
        (PLAIN + 'before = " "\n', "before: expected a program and its arguments, found an empty name"),
        (PLAIN + 'after = [""]\n', "after: expected a program and its arguments, found an empty name"),
        (PLAIN + "hook-seconds = 0\n", "hook-seconds: expected 1 to 604800, found 0"),
        (PLAIN + 'options = ["-e", "ssh -p 2"]\n', "options: expected options such as"),
        (PLAIN + 'options = ["--"]\n', "options: expected options such as"),
        ('[jobs.photos]\nsource = "a"\ndestination = "/b"\n', "source: expected /PATH, ~/PATH, HOST:PATH"),
        ('[jobs.photos]\nsource = "/a"\ndestination = "b"\n', "destination: expected /PATH"),
        ('[jobs.photos]\nsource = "/a"\n', "'destination' is missing in [jobs.photos]"),
        ('[jobs.photos]\nsource = []\ndestination = "/b"\n', "source: expected a directory"),
        ('[jobs.photos]\nsource = "/a/"\ndestination = "/a"\n', "destination: it is the source"),
        (
            '[jobs.photos]\nsource = "rsync://h/x"\ndestination = "/a"\n',
            "rdc does not speak rsync's protocol",
        ),
        ('[jobs.a]\nkind="store"\nsource = ["/a", "/b"]\ndestination = "/c"\n', "expected one directory"),
        ('[jobs."a/b"]\nsource = "/a"\ndestination = "/b"\n', "a job's name has letters, digits, - and _"),
        ('[jobs."../x"]\nsource = "/a"\ndestination = "/b"\n', "a job's name has letters"),
        ("jobs = 3\n", "expected a table [jobs]"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        jobs_of(text, tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "config.toml") in str(error.value)


@pytest.mark.parametrize(
    "line",
    [
        'before = "curl -H token=S3CRET http://x"',
        'source = "rdc://me:S3CRET@nas/x"',
        'exclude = {a = "S3CRET"}',
    ],
)
def test_no_message_has_a_secret(line: str, tmp_path: Path) -> None:
    text = PLAIN.replace('source = "/a/"\n', "") if line.startswith("source") else PLAIN
    with pytest.raises(UsageError) as error:
        jobs_of(text + line + "\n", tmp_path)
    assert "jobs.photos" in str(error.value) and "S3CRET" not in str(error.value)


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(PLAIN)
    (tmp_path / "config.toml").chmod(0o666)
    with pytest.raises(UsageError, match="others can change it"):
        read_jobs(str(tmp_path / "config.toml"), {})


def test_an_unknown_job_is_answered_with_a_similar_one(tmp_path: Path) -> None:
    jobs = jobs_of(PLAIN, tmp_path)
    with pytest.raises(UsageError, match=r"there is no job 'photo' in /c; did you mean photos\?"):
        chosen_jobs(jobs, ["photo"], "/c")
    with pytest.raises(UsageError, match="there are no jobs in /c"):
        chosen_jobs({}, ["photo"], "/c")
    assert [job.name for job in chosen_jobs(jobs, ["photos", "photos"], "/c")] == ["photos"]


HOSTS = 'timeout = 5\n[hosts.nas]\nrsh = "ssh -p 2222"\ntimeout = 9\n[hosts.far]\ntimeout = 10\n' + PLAIN


def _words(verb: str, place: Path, *typed: str, **environ: str) -> list[str]:
    (place / "rdc").mkdir(exist_ok=True)
    (place / "rdc/config.toml").write_text(HOSTS)
    groups = load_verbs()[verb].OPTIONS
    found = default_words(groups, {"XDG_CONFIG_HOME": str(place), **environ}, typed, verb == "install")
    return [chosen.word for chosen in found]


def test_settings_of_a_host_apply_to_its_connections(tmp_path: Path) -> None:
    assert _words("sync", tmp_path, "a", "b") == ["--timeout=5"]
    assert _words("sync", tmp_path, "-v", "a", "me@nas:b") == ["--rsh=ssh -p 2222", "--timeout=9"]
    assert _words("check", tmp_path, "nas:a", "b") == ["--rsh=ssh -p 2222", "--timeout=9"]
    assert _words("install", tmp_path, "nas") == ["--rsh=ssh -p 2222"]
    assert _words("sync", tmp_path, "--exclude", "nas:x", "a", "b") == ["--timeout=5"]
    assert _words("sync", tmp_path, "a", "nas:b", RDC_TIMEOUT="1") == ["--rsh=ssh -p 2222", "--timeout=1"]
    assert _words("sync", tmp_path, "--no-such-option", "nas:b") == ["--timeout=5"]


def test_two_hosts_that_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'timeout' differs from that of .*; give --timeout on the command"):
        _words("sync", tmp_path, "nas:a", "far:b")


def test_a_setting_that_is_none_of_a_host_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rdc").mkdir()
    (tmp_path / "rdc/config.toml").write_text('[hosts.nas]\ncatalog = "/x"\n')
    with pytest.raises(UsageError, match=r"hosts\.nas\.catalog: there is no such setting"):
        default_words(load_verbs()["sync"].OPTIONS, {"XDG_CONFIG_HOME": str(tmp_path)}, ["a", "nas:b"])
