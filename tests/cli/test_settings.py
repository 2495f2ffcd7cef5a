"""Settings for all runs. The environment overrides the file, and typed options override both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.cli import main
from rdc.cli.environment import SETTINGS, default_words
from rdc.cli.verb import load_verbs
from rdc.errors import ExitCode
from tests.support.running.fake_environment import FakeProcess


def run(*words: str, config: Path | None = None, **environ: str) -> tuple[int, str, str]:
    if config is not None:
        environ["XDG_CONFIG_HOME"] = str(config)
    process = FakeProcess(environ=environ)
    code = main.run(words, process.environment)
    return code, process.out, process.err


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "rdc").mkdir()
    return tmp_path


def words_of(verb: str, home: Path, **environ: str) -> list[str]:
    groups = load_verbs()[verb].OPTIONS
    return [chosen.word for chosen in default_words(groups, {"XDG_CONFIG_HOME": str(home), **environ})]


def test_settings_become_the_options_of_verbs_that_have_them(home: Path) -> None:
    (home / "rdc/config.toml").write_text(
        'timeout = 60\nbwlimit = "1m"\ncompress = false\nfsync = true\ncatalog = "off"\nrsh = "ssh -4"\n'
    )
    assert words_of("sync", home) == [
        "--bwlimit=1m",
        "--no-catalog",
        "--no-compress",
        "--fsync",
        "--rsh=ssh -4",
        "--timeout=60",
    ]
    assert words_of("signature", home) == ["--no-catalog"]
    assert words_of("serve", home) == []
    changed = words_of("sync", home, RDC_TIMEOUT="5", RDC_COMPRESS="yes", RDC_CATALOG="/c", RDC_OWNER="0")
    assert changed == [
        "--bwlimit=1m",
        "--catalog=/c",
        "--compress",
        "--fsync",
        "--no-owner",
        "--rsh=ssh -4",
        "--timeout=5",
    ]


def test_every_setting_is_an_option_that_another_can_take_back() -> None:
    options = {name: o for g in load_verbs()["sync"].OPTIONS for o in g.options for name in o.names}
    for setting in SETTINGS:
        assert (options[setting.on].metavar is not None) == setting.value
        assert setting.value or setting.off in options


def test_what_is_typed_wins(home: Path, tmp_path: Path) -> None:
    """An invalid timeout of a setting is an error, unless a typed option overrides it."""
    (home / "rdc/config.toml").write_text('remote-path = ""\n')
    code, _, err = run("sync", "a", "h:b", config=home)
    assert code == ExitCode.USAGE
    assert err.startswith("rdc: --remote-path needs a program")
    (home / "rdc/config.toml").write_text("timeout = -1\n")
    code, _, err = run("sync", str(tmp_path / "none"), str(tmp_path / "x"), config=home)
    assert code == ExitCode.USAGE
    assert err == (
        f"rdc: --timeout=-1: a number of seconds is expected, 0 for none (from {home}/rdc/config.toml)\n"
    )
    code, _, err = run("sync", "--timeout=1", str(tmp_path / "none"), str(tmp_path / "x"), config=home)
    assert code != ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ntimeot = 1", "timeot: there is no such setting; did you mean 'timeout'?"),
        ("[zzzz]", "zzzz: there is no such setting; there are bwlimit, catalog,"),
        ("timeout = 1.5", "timeout: expected text in quotes"),
        ('compress = "yes"', "compress: expected true or false"),
        ("x", "not TOML"),
    ],
)
def test_mistakes_in_the_file_are_named(text: str, message: str, home: Path) -> None:
    path = home / "rdc/config.toml"
    path.write_text(text)
    for words in (("sync", "a", "b"), ("config", "show")):
        code, out, err = run(*words, config=home)
        assert (code, out) == (ExitCode.USAGE, "")
        assert err.startswith(f"rdc: {path}: {message}")
    # Commands without settings still work.
    assert run("sync", "--help", config=home)[0] == 0
    assert run("--version", config=home)[0] == 0
    assert run("completions", "bash", config=home)[0] == 0


def test_show_tells_where_values_come_from(home: Path) -> None:
    (home / "rdc/config.toml").write_text("timeout = 60\nfsync = false\n")
    code, out, _ = run("config", "show", config=home, RDC_TIMEOUT="5", RDC_KEYS="/k\n")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["#", f"{home}/rdc/config.toml"]
    assert ["timeout", "5", "RDC_TIMEOUT"] in lines
    assert ["fsync", "false", f"{home}/rdc/config.toml"] in lines
    assert ["keys", "/k\\x0a", "RDC_KEYS"] in lines
    assert ["rsh", "-", "default"] in lines
    assert len(lines) == 1 + len(SETTINGS)
    assert run("config")[0] == run("config", "show", "x")[0] == ExitCode.USAGE


def test_a_variable_that_is_wrong_is_named() -> None:
    assert run("sync", "a", "b", RDC_FSYNC="maybe") == (
        1,
        "",
        "rdc: RDC_FSYNC=maybe: expected true or false\n",
    )


@pytest.mark.parametrize("mode", [0o666, 0o622, 0o664])
def test_settings_that_others_may_write_are_refused(mode: int, home: Path) -> None:
    """They may name programs."""
    path = home / "rdc/config.toml"
    path.write_text('rsh = "evil"\n')
    path.chmod(mode)
    code, out, err = run("sync", "h:x", "y", config=home)
    assert (code, out, len(err.splitlines())) == (ExitCode.USAGE, "", 1)
    assert f"{path}: others can change it (mode {mode:o})" in err
    path.chmod(0o644)
    path.parent.chmod(0o777)
    assert f"{path.parent}: others can change it (mode 777)" in run("sync", "h:x", "y", config=home)[2]


def test_settings_of_another_user_are_refused(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a file of another user needs root")
    path = home / "rdc/config.toml"
    path.write_text('rsh = "evil"\n')
    for wrong in (path, path.parent):
        os.chown(wrong, 4242, 4242)
        code, _, err = run("sync", "h:x", "y", config=home)
        assert (code, f"{wrong}: it belongs to another user (uid 4242)" in err) == (ExitCode.USAGE, True)
        os.chown(wrong, 0, 0)


def test_settings_of_hosts_are_listed_after_those_of_all_runs(home: Path) -> None:
    (home / "rdc/config.toml").write_text(
        'timeout = 5\n[hosts.nas]\nrsh = "ssh -p 2222"\ntimeout = 9\n[hosts.far]\ncompress = true\n'
    )
    code, out, err = run("config", "show", config=home)
    assert (code, err) == (ExitCode.OK, "")
    assert out.partition("\n\n")[2] == (
        "[hosts.nas]\nrsh           ssh -p 2222\ntimeout       9\n\n[hosts.far]\ncompress      true\n"
    )
    (home / "rdc/config.toml").write_text('[hosts.nas]\ncatalog = "/x"\n')
    assert run("config", "show", config=home)[0] == ExitCode.USAGE
