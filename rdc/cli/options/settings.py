"""Settings for all runs, from a file and from the environment. Options on the command line override them.

Only an option that another option can revert is a setting. A flag without such a counterpart would stay on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.location import config_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import OptionGroup

__all__ = ["SETTINGS", "Chosen", "Setting", "chosen_settings", "default_words", "settings_file"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and the option that it stands for."""

    key: str
    """The name in the file. The variable is RDC_ and the name in capitals."""
    help: str
    on: str = ""
    """For a switch: the option for true. Otherwise: the option that takes the value."""
    off: str = ""
    """The option for a switch that is false, or for a value that is `off`."""
    value: bool = True
    """Whether the setting has a value. False means a switch."""

    @property
    def variable(self) -> str:
        """The environment variable of the setting."""
        return "RDC_" + self.key.upper().replace("-", "_")


SETTINGS = (
    Setting("bwlimit", "send at most so much a second, as in --bwlimit", "--bwlimit"),
    Setting("catalog", "where signatures are remembered, or off", "--catalog", "--no-catalog"),
    Setting("compress", "true: always, false: never", "--compress", "--no-compress", value=False),
    Setting("depth", "how many calls to storage are in flight, as in --depth", "--depth"),
    Setting("fsync", "false: do not wait for the disk", "--fsync", "--no-fsync", value=False),
    Setting("guard", "stop before more than that share of DST changes, or off", "--guard", "--no-guard"),
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
    """A setting with a value, and where the value comes from."""

    setting: Setting
    value: str
    source: str
    """The path of the file, or the name of the variable."""

    @property
    def word(self) -> str:
        """The word on a command line that means the same."""
        if self.setting.value:
            off = self.setting.off and self.value == "off"
            return self.setting.off if off else f"{self.setting.on}={self.value}"
        return self.setting.on if self.value == "true" else self.setting.off


def settings_file(environ: Mapping[str, str]) -> str | None:
    """Returns the path of the settings file, or None without a home directory."""
    directory = config_directory(environ)
    return None if directory is None else os.path.join(directory, "config.toml")


def chosen_settings(environ: Mapping[str, str]) -> list[Chosen]:
    """Returns the settings with a value, in the order of SETTINGS.

    Raises UsageError that names the file and key, or the variable.
    """
    path = settings_file(environ)
    found = _read_file(path) if path is not None and os.path.exists(path) else {}
    for setting in SETTINGS:
        value = environ.get(setting.variable, "")
        if value:
            found[setting.key] = Chosen(setting, _checked(setting, value), setting.variable)
    return [found[setting.key] for setting in SETTINGS if setting.key in found]


def default_words(groups: Iterable[OptionGroup], environ: Mapping[str, str]) -> list[Chosen]:
    """Returns the settings that a verb with these options knows. Their words precede the typed ones."""
    names = {name for group in groups for option in group.options for name in option.names}
    if not any(setting.on in names for setting in SETTINGS):
        return []
    return [chosen for chosen in chosen_settings(environ) if chosen.word.partition("=")[0] in names]


def _read_file(path: str) -> dict[str, Chosen]:
    from rdc.model.settings import Setting as Declared
    from rdc.model.settings import SettingKind, read_settings

    table = read_settings(path)
    if table is None:
        return {}
    by_key = {setting.key: setting for setting in SETTINGS}
    kinds = {
        setting.key: Declared(SettingKind.SCALAR if setting.value else SettingKind.FLAG)
        for setting in SETTINGS
    }
    found = table.read(kinds, hint=f"; there are {', '.join(by_key)}")
    texts = {name.replace("_", "-"): value for name, value in found.items()}
    return {
        key: Chosen(by_key[key], value if by_key[key].value else str(value).lower(), path)
        for key, value in texts.items()
    }


def _checked(setting: Setting, value: str) -> str:
    if setting.value:
        return value
    if value.lower() not in (*_YES, *_NO):
        raise UsageError(f"{setting.variable}={value}: expected true or false")
    return str(value.lower() in _YES).lower()
