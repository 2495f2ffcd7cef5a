# Sourced by the other scripts: makes .venv, and installs rdc into it if anything that rdc is built from has changed.
# setup EXTRA   EXTRA is "" or a name of [project.optional-dependencies].
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
venv=$top/.venv

fail() { printf 'rdc setup: %s\n' "$*" >&2; exit 1; }

# Whether the installed copy is newer than everything it depends on. Compares change times of files and directories,
# which cp -p does not preserve. Every run of scripts/rdc waits for this check.
unchanged() {
  [ -z "${PYTHON:-}" ] && [ "$(cat "$venv/place" 2>/dev/null)" = "$top" ] && [ -e "$venv/stamp-$1" ] &&
    [ -z "$(find "$top/pyproject.toml" "$top/setup.py" "$top/scripts/bin/rdc" "$top/rdc" \( -name __pycache__ -prune \) -o \( -type d -o -name '*.c' \
      -o -name '*.h' -o -name pyproject.toml -o -name setup.py -o -path '*/scripts/bin/rdc' \) -cnewer "$venv/stamp-$1" -print)" ]
}

# Chooses a compiler that works: the machine's own, or zig's from the package index.
compiler() {
  probe=$(mktemp -d)
  echo 'int main(void) { return 0; }' >"$probe/probe.c"
  for words in "${CC:-cc}" gcc clang; do
    # shellcheck disable=SC2086
    if $words "$probe/probe.c" -o "$probe/probe" >/dev/null 2>&1; then
      [ "$words" = cc ] || export CC="$words"
      rm -r "$probe"
      return
    fi
  done
  rm -r "$probe"
  printf 'rdc setup: no C compiler works here; taking ziglang from the package index\n' >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'ziglang>=0.13' >&2 ||
    fail "no C compiler; install one (Debian: apt-get install gcc)"
  export CC="$venv/bin/python -m ziglang cc" LDSHARED="$venv/bin/python -m ziglang cc -shared"
}

setup() {
  extra=$1
  ! unchanged "$extra" || return 0
  python=${PYTHON:-python3}
  command -v "$python" >/dev/null 2>&1 || fail "no $python found; install Python 3.11 or newer (Debian: apt-get install python3 python3-venv python3-dev)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is $("$python" -V 2>&1); Python 3.11 or newer is needed (set PYTHON=/path/to/python3.11)"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python has no venv module; install it (Debian: apt-get install python3-venv)"
  header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
  [ -e "$header" ] || fail "no Python headers ($header); install them (Debian: apt-get install python3-dev)"

  begun=$(mktemp)
  # The stamp names everything the installed copy depends on; the Python sources are used in place.
  stamp=$( { cat "$top/pyproject.toml" "$top/setup.py" "$top/scripts/bin/rdc"; find "$top/rdc" -name '*.c' -o -name '*.h' | LC_ALL=C sort | xargs cat; "$python" -V; echo "$top"; } | cksum)
  if [ "$(cat "$venv/stamp-$extra" 2>/dev/null)" != "$stamp" ]; then
    printf 'rdc setup: installing into %s, which takes up to a minute\n' "$venv" >&2
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" >&2 || fail "could not create $venv"
    # Python 3.11 installs setuptools into .venv, where it adds 0.6 ms to every start of Python. pip builds rdc with a
    # copy of its own.
    ! "$venv/bin/python" -c 'import setuptools' 2>/dev/null ||
      "$venv/bin/python" -m pip uninstall --quiet --disable-pip-version-check --yes setuptools >&2
    rm -f "$venv"/stamp-*
    compiler
    target=$top
    [ -z "$extra" ] || target="$top[$extra]"
    # The tests' packages are 200. uv unpacks them in a tenth of pip's time; where it does not work, pip does.
    [ "$extra" = test ] && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv >&2 &&
      "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --editable "$target" >&2 ||
      "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --editable "$target" >&2 ||
      fail "installation into $venv failed; the lines above say why"
    # pip compiles on one core. Without this, every start compiles all of rdc if Python may not write beside the
    # sources. Some packages hold files that are no Python of this version. The largest tools of the tests, of which a
    # run loads little, are compiled as they are loaded.
    "$venv/bin/python" -m compileall -q -q -j 0 \
      -x 'site-packages/(cfnlint|moto|mpmath|mypy|networkx|pip|ray|sympy)/' "$venv/lib" "$top/rdc" >&2 || true
    printf '%s\n' "$stamp" >"$venv/stamp-$extra"
    # An extra includes all that the plain installation needs.
    printf '%s\n' "$stamp" >"$venv/stamp-"
  fi
  printf '%s\n' "$top" >"$venv/place"
  # The time before the sources were read: a file that is edited meanwhile is newer.
  touch -r "$begun" "$venv/stamp-$extra"
  rm -f "$begun"
}
