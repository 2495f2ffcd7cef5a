"""Builds the C modules; pyproject.toml has everything else."""

import os
import sysconfig

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError


class BuildModules(build_ext):
    """Ends with one line where nothing can be compiled, in place of a traceback."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (CCompilerError, CompileError, ExecError, LinkError, OSError, PlatformError) as error:
            header = os.path.join(sysconfig.get_path("include"), "Python.h")
            missing = "" if os.path.exists(header) else f"; {header} is missing"
            raise SystemExit(
                "rdc: needs a C compiler and Python's headers (Debian: apt-get install gcc python3-dev;"
                f' without root: CC="python3 -m ziglang cc", of the package ziglang){missing}: {error}'
            ) from None


setup(cmdclass={"build_ext": BuildModules})
