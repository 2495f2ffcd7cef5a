"""What a user sets once for all runs: from a file and from the environment, under the options typed.

Only options that another one typed can take back are settings: a flag that nothing turns off would be on for
good.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from rdc.errors import UsageError
from rdc.model.home import config_directory
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options import OptionGroup
    from rdc.model.settings import Table

__all__ = ["SETTINGS", "Chosen", "Setting", "chosen_settings", "default_words", "settings_file"]


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    """In the file; RDC_KEY is the variable."""
    help: str
    on: str = ""
    """For a switch: the option when it is true; otherwise the option that takes the value."""
    off: str = ""
    """The option when it is false, or, of a value, when it is `off`."""
    value: bool = True

    @property
    def variable(self) -> str:
        return "RDC_" + self.key.upper().replace("-", "_")


SETTINGS = (
    Setting("bwlimit", "send at most so much a second, as in --bwlimit", "--bwlimit"),
    Setting("catalog", "where signatures are remembered, or off", "--catalog", "--no-catalog"),
    Setting("compress", "true: always, false: never", "--compress", "--no-compress", value=False),
    Setting("fsync", "false: do not wait for the disk", "--fsync", "--no-fsync", value=False),
    Setting("keys", "the key directory for rdc://", "--keys"),
    Setting("owner", "true: always keep owners, false: never", "--owner", "--no-owner", value=False),
    Setting("remote-path", "rdc on the far side", "--remote-path"),
    Setting("rsh", "the remote shell, as in -e", "--rsh"),
    Setting("timeout", "seconds of silence to bear, as in --timeout", "--timeout"),
)

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A setting that somebody gave a value."""

    setting: Setting
    value: str
    source: str
    """The file, or the variable."""

    @property
    def word(self) -> str:
        """The option that says the same."""
        if self.setting.value:
            off = self.setting.off and self.value == "off"
            return self.setting.off if off else f"{self.setting.on}={self.value}"
        return self.setting.on if self.value == "true" else self.setting.off


def settings_file(environ: Mapping[str, str]) -> str | None:
    """Where the file is looked for; None where there is no home."""
    directory = config_directory(environ)
    return None if directory is None else os.path.join(directory, "config.toml")


def chosen_settings(environ: Mapping[str, str]) -> list[Chosen]:
    """All that have a value, in the order of SETTINGS. Raises UsageError naming the line or the variable."""
    path = settings_file(environ)
    found = _read_file(path) if path is not None and os.path.exists(path) else {}
    for setting in SETTINGS:
        value = environ.get(setting.variable, "")
        if value:
            found[setting.key] = Chosen(setting, _checked(setting, value), setting.variable)
    return [found[setting.key] for setting in SETTINGS if setting.key in found]


def default_words(groups: Iterable[OptionGroup], environ: Mapping[str, str]) -> list[Chosen]:
    """The settings that a verb with these options knows; their words go before what was typed."""
    names = {name for group in groups for option in group.options for name in option.names}
    if not any(setting.on in names for setting in SETTINGS):
        return []
    return [chosen for chosen in chosen_settings(environ) if chosen.word.partition("=")[0] in names]


def _read_file(path: str) -> dict[str, Chosen]:
    from rdc.model.settings import read_settings

    table = read_settings(path)
    if table is None:
        return {}
    found = {
        setting.key: Chosen(setting, _from_file(table, setting), path)
        for setting in SETTINGS
        if setting.key in table
    }
    for setting in SETTINGS:
        if setting.key not in table and not setting.value:
            table.flag(setting.key, False)
        elif setting.key not in table:
            table.text(setting.key, "")
    table.finish(f"; there are {', '.join(setting.key for setting in SETTINGS)}")
    return found


def _from_file(table: Table, setting: Setting) -> str:
    if setting.value:
        return table.scalar(setting.key)
    return str(table.flag(setting.key, False)).lower()


def _checked(setting: Setting, value: str) -> str:
    if setting.value:
        return value
    if value.lower() not in (*_YES, *_NO):
        raise UsageError(f"{setting.variable}={value}: expected true or false")
    return str(value.lower() in _YES).lower()
