#!/usr/bin/env bash
# Bring .venv to what pyproject.toml asks for:  scripts/install.sh EXTRAS
# EXTRAS is local, or local,dev which holds it, or local,dev,fuzz which does not count for others.
#
# The stamp of an install is the pyproject.toml that was installed, so when nothing changed the
# whole script is a comparison of two files and pip is not started.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

extras=$1
venv=$PWD/.venv
stamp=$venv/.installed-$extras
full_stamp=$venv/.installed-local,dev
[[ $extras == local ]] || full_stamp=$stamp

# A virtual environment knows its folder by absolute path: one that was moved or copied, or whose
# Python is gone or too old, is of no use.
usable() {
    [[ -x $venv/bin/python && -f $venv/bin/pip ]] &&
        head -n 2 "$venv/bin/pip" | grep -qF "$venv/bin/python" &&
        "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'
}

create() {
    local python=${PYTHON:-python3} real
    # Asking the interpreter for its own path sees through version managers' shims.
    if ! real=$("$python" -c 'import sys; print(sys.executable)'); then
        echo "omniduplex needs Python 3.11 or newer, and '$python' does not run." >&2
        echo "Install one, or name one: make run PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    if ! "$real" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "omniduplex needs Python 3.11 or newer; $real is $("$real" -V 2>&1)." >&2
        echo "Name another: make run PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    rm -rf "$venv"
    if ! "$real" -m venv "$venv"; then
        rm -rf "$venv"
        echo "No virtual environment could be made with $real; on Debian and Ubuntu" >&2
        echo "the package python3-venv is needed." >&2
        exit 1
    fi
}

usable || create

if cmp -s pyproject.toml "$stamp" || cmp -s pyproject.toml "$full_stamp"; then
    exit 0
fi
cp pyproject.toml "$stamp.new"
"$venv/bin/python" -m pip install --no-input --disable-pip-version-check --prefer-binary \
    --editable ".[$extras]"
mv "$stamp.new" "$stamp"
