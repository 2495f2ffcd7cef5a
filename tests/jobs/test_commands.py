"""`rdc run` and `rdc jobs` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rdc.cli import main
from rdc.errors import ExitCode
from rdc.jobs import timer
from rdc.jobs.report import METRICS_HEAD
from tests.support.running.fake_environment import FakeProcess


class Home:
    """A home directory with a settings file and two trees."""

    def __init__(self, place: Path, text: str) -> None:
        self.place = place
        (place / ".config/rdc").mkdir(parents=True)
        (place / ".config/rdc/config.toml").write_text(text)
        (place / "a").mkdir()
        (place / "a/f").write_text("content")
        (place / "a/.rdcignore").write_text("*.tmp\n")
        (place / "a/x.tmp").write_text("left out")

    def run(self, *words: str, terminal: bool = False) -> tuple[int, str, str]:
        process = FakeProcess(environ={"HOME": str(self.place), "RDC_CATALOG": "off"}, terminal=terminal)
        code = main.run(words, process.environment)
        return code, process.out, process.err


TEXT = """
[jobs.photos]
source = "~/a/"
destination = "~/b/"
rdcignore = true
schedule = "daily 03:30"

[jobs.states]
kind = "store"
source = "~/a"
destination = "~/st"

[jobs.both]
kind = "unite"
source = "~/a"
destination = "~/two"

[jobs.gone]
source = "~/a/"
destination = "nowhere:b/"
options = ["--rsh=false"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "two").mkdir()
    return Home(tmp_path, TEXT)


def test_a_job_runs_and_prints_nothing_unless_someone_looks(home: Home) -> None:
    assert home.run("run", "photos") == (0, "", "")
    assert {path.name for path in (home.place / "b").iterdir()} == {"f", ".rdcignore"}
    code, out, err = home.run("run", "-v", "photos")
    assert (code, out) == (0, "")
    assert "unchanged" in err


def test_all_jobs_run_though_one_fails(home: Home) -> None:
    metrics = home.place / "rdc.prom"
    code, _, err = home.run("run", "--all", "--quiet", f"--metrics={metrics}")
    assert code == ExitCode.STREAM
    assert "rdc: gone: " in err
    assert (home.place / "two/f").exists() and (home.place / "st").exists()
    text = metrics.read_text()
    for job, result in {"photos": 0, "states": 0, "both": 0, "gone": 12}.items():
        assert f'rdc_job_exit_code{{job="{job}"}} {result}\n' in text
    assert 'rdc_job_created_entries{job="photos"} 3\n' in text
    assert 'rdc_job_changed_entries{job="both"} 3\n' in text
    assert str(home.place) not in text and "nowhere" not in text
    code, out, _ = home.run("jobs")
    rows = [line.split() for line in out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [
        ["photos", "sync"],
        ["states", "store"],
        ["both", "unite"],
        ["gone", "sync"],
    ]
    assert rows[1][-1] == "03:30"
    assert "failed (12)" in out.splitlines()[4]


def test_metrics_replace_nothing_else_and_that_shows_first(home: Home) -> None:
    other = home.place / "notes"
    other.write_text("mine")
    code, _, err = home.run("run", "photos", f"--metrics={other}")
    assert code == ExitCode.USAGE
    assert "expected metrics of rdc run, or nothing, found another file" in err
    assert "--overwrite" not in err  # which rdc run does not have
    assert other.read_text() == "mine" and not (home.place / "b").exists()
    other.write_bytes(METRICS_HEAD)
    assert home.run("run", "photos", f"--metrics={other}")[0] == 0


def test_a_dry_run_changes_and_records_nothing(home: Home) -> None:
    code, _, err = home.run("run", "-n", "photos")
    assert code == 0
    assert "dry run" in err
    assert not (home.place / "b").exists() and not (home.place / ".local").exists()
    assert home.run("run", "-n", "states")[2] == (
        "rdc: the job states is of kind store, which has no --dry-run\n"
    )


def test_json_is_that_of_the_verb(home: Home) -> None:
    code, out, _ = home.run("run", "--json", "photos")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["event"] == "summary"


def test_a_wrong_option_of_a_job_is_reported_with_the_job(home: Home) -> None:
    path = home.place / ".config/rdc/config.toml"
    path.write_text(TEXT.replace("--rsh=false", "--no-such"))
    code, _, err = home.run("run", "gone")
    assert code == ExitCode.USAGE
    assert err.startswith("rdc: gone: unknown option --no-such")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("photos", '"--exclude"', "photos: options: --exclude needs a value: --exclude PATTERN"),
        ("photos", '"-H", "--bwlimit"', "photos: options: --bwlimit needs a value: --bwlimit RATE"),
        ("states", '"--name"', "states: options: --name needs a value: --name NAME"),
        ("photos", '"-n"', "--dry-run is for no job: rdc run -n photos shows what would be done"),
        ("photos", '"--help=all"', "--help is for no job: the job would do nothing; leave it out"),
        ("photos", '"--list-only"', "--list-only is for no job"),
        ("states", '"--help"', "--help is for no job"),
        ("both", '"--status"', "--status is for no job"),
        ("both", '"--forget"', "--forget is for no job: it would end the pair at each run"),
    ],
)
def test_an_option_that_makes_no_run_is_refused_before_any_job(
    name: str, options: str, message: str, home: Home
) -> None:
    path = home.place / ".config/rdc/config.toml"
    head, table, rest = TEXT.partition(f"[jobs.{name}]\n")
    path.write_text(f'{head}{table}options = [{options}]\nbefore = ["touch", "~/hook"]\n{rest}')
    code, out, err = home.run("run", name)
    assert (code, out) == (ExitCode.USAGE, "")
    assert message in err and err.count("\n") == 1
    assert not (home.place / "b").exists() and not (home.place / "st").exists()
    assert "never" in home.run("jobs")[1].splitlines()[1 + ["photos", "states", "both"].index(name)]


@pytest.mark.parametrize("options", ['"--exclude", "-x"', '"--exclude=--"'])
def test_a_value_of_its_own_may_look_like_an_option(options: str, home: Home) -> None:
    path = home.place / ".config/rdc/config.toml"
    path.write_text(TEXT.replace("rdcignore = true\n", f"options = [{options}]\n"))
    code, _, err = home.run("run", "photos")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "rdc run needs the name of a job: photos, states, both, gone (or --all)"),
        (("run", "foto"), "there is no job 'foto' in "),
        (("run", "--all", "photos"), "--all and NAME exclude each other"),
        (("run", "photos", "--metrics="), "--metrics needs a file"),
        (("jobs", "photos"), "rdc jobs is followed by list, show, timer"),
        (("jobs", "show"), "rdc jobs show takes the NAME of a job"),
        (("jobs", "list", "photos"), "write: rdc jobs show NAME"),
        (("jobs", "--cron"), "--cron is for rdc jobs timer"),
        (("jobs", "timer", "photos", "often"), "'often' is no schedule"),
        (("jobs", "timer", "both"), "the job both has no schedule; name one"),
        (("jobs", "timer", "--remove", "photos", "daily"), "--remove takes only a NAME"),
    ],
)
def test_wrong_words_get_advice(words: tuple[str, ...], message: str, home: Home) -> None:
    code, _, err = home.run(*words)
    assert code == ExitCode.USAGE
    assert message in err and err.count("\n") == 1


def test_a_job_is_shown_as_its_command(home: Home) -> None:
    home.run("run", "photos")
    out = home.run("jobs", "show", "photos")[1]
    assert out.startswith(f"photos: rdc sync --rdcignore -- {home.place}/a/ {home.place}/b/\n")
    assert "  created entries    3\n" in out


def test_a_timer_is_written_and_removed_and_replaces_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "runs_systemd", lambda: True)
    units = home.place / ".config/systemd/user"
    code, out, err = home.run("jobs", "timer", "photos")
    assert code == 0
    assert out.splitlines() == [f"{units}/rdc-photos.service", f"{units}/rdc-photos.timer"]
    assert "systemctl --user enable --now rdc-photos.timer" in err
    assert "OnCalendar=*-*-* 03:30:00\n" in (units / "rdc-photos.timer").read_text()
    assert home.run("jobs", "timer", "photos", "weekly", "sun")[0] == 0
    assert "OnCalendar=Sun " in (units / "rdc-photos.timer").read_text()
    assert home.run("jobs", "timer", "--remove", "photos")[0] == 0
    assert list(units.iterdir()) == []
    (units / "rdc-photos.timer").write_text("[Timer]\n")
    for words in (("timer", "photos"), ("timer", "--remove", "photos")):
        code, _, err = home.run("jobs", *words)
        assert code == ExitCode.USAGE
        assert "expected a unit file of rdc jobs timer" in err
    assert (units / "rdc-photos.timer").read_text() == "[Timer]\n"


def test_without_systemd_a_crontab_line_is_printed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer, "runs_systemd", lambda: False)
    _, out, err = home.run("jobs", "timer", "photos", "6h")
    assert out.startswith("0 */6 * * * ") and out.endswith(" run --quiet photos\n")
    assert err == "add this line with: crontab -e\n"
    assert not (home.place / ".config/systemd").exists()


def test_without_jobs_the_list_says_how_to_begin(tmp_path: Path) -> None:
    home = Home(tmp_path, "timeout = 5\n")
    code, out, err = home.run("jobs")
    assert (code, out) == (0, "")
    assert "there are no jobs in " in err and "rdc run --help has an example" in err
    assert home.run("run", "--all")[0] == ExitCode.USAGE


def test_rdcignore_warns_where_it_would_delete(home: Home) -> None:
    (home.place / "b").mkdir()
    (home.place / "b/y.tmp").write_text("kept")
    source, copy = f"{home.place}/a/", f"{home.place}/b/"
    assert home.run("sync", "--rdcignore", "--delete", source, copy)[2] == ""
    assert (home.place / "b/y.tmp").exists()
    err = home.run("sync", "--rdcignore", "--delete-excluded", source, copy)[2]
    assert "--delete-excluded deletes at DST what .rdcignore leaves out" in err
    assert not (home.place / "b/y.tmp").exists()
