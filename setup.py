"""Builds the C modules; pyproject.toml has everything else."""

import os
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from itertools import chain

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

FLAGS = ["-O3", "-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"]


class BuildModules(build_ext):
    """Compiles on all cores, and ends with one line where there is no compiler."""

    def build_extensions(self) -> None:
        compile_some = self.compiler.compile

        def compile_all(sources: list[str], **options: object) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return list(chain(*pool.map(lambda source: compile_some([source], **options), sources)))

        self.compiler.compile = compile_all
        try:
            super().build_extensions()
        except (CCompilerError, CompileError, ExecError, LinkError, OSError, PlatformError) as error:
            header = os.path.join(sysconfig.get_path("include"), "Python.h")
            missing = "" if os.path.exists(header) else f"; {header} is missing"
            raise SystemExit(
                "rdc: needs a C compiler and Python's headers (Debian: apt-get install gcc python3-dev;"
                f' without root: CC="python3 -m ziglang cc", of the package ziglang){missing}: {error}'
            ) from None


def module(package: str, name: str, *flags: str) -> Extension:
    """Return the one C module of a package: all C files below its folder."""
    return Extension(
        f"rdc.{package}.{name}",
        sorted(glob(f"rdc/{package}/**/*.c", recursive=True)),
        include_dirs=[f"rdc/{package}"],
        depends=["rdc/binding.h", *sorted(glob(f"rdc/{package}/**/*.h", recursive=True))],
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=list(flags),
    )


setup(
    cmdclass={"build_ext": BuildModules},
    ext_modules=[module("kernel", "_kernel"), module("files", "_files", "-pthread")],
)
