#!/bin/sh
# Makes .venv what requirements/dev.txt says, and does nothing when it already is. Needs a supported Python with venv;
# everything else is installed, by hash, into .venv.
set -eu
cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/set-up

# The Pythons that are locked and tested; the same range as `requires-python` (tests/unit/test_tidy.py compares them).
first=3.11
last=3.13
in_range="import sys; sys.exit(not ($(echo $first | tr . ,)) <= sys.version_info[:2] <= ($(echo $last | tr . ,)))"

say() { echo "set-up: $*" >&2; }
refuse() { say "$*"; exit 1; }

# What .venv must be made again for: its place (scripts in it hold their path), its Python, the lock, the project's own metadata.
place=$(pwd -P)
key() { echo "$place" && "$venv/bin/python" -VV && cat requirements/dev.txt pyproject.toml tools/set_up.sh | cksum; }

usable() { "$venv/bin/python" -c "$in_range" 2>/dev/null && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

find_python() {
    without_venv=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        "$candidate" -c "$in_range" 2>/dev/null || continue
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
        without_venv=$candidate
    done
    [ -z "$without_venv" ] || refuse "$without_venv has no venv module; install it (Debian, Ubuntu: apt-get install python3-venv)"
    refuse "needs Python $first to $last (tried: ${PYTHON:-python3.13 python3.12 python3.11 python3}); other versions are" \
        "not locked yet. Name one with: make setup PYTHON=/path/to/python"
}

[ "$(key 2>/dev/null)" != "$(cat $stamp 2>/dev/null)" ] || exit 0

if [ -f $stamp ] && [ "$(head -n 1 $stamp)" = "$place" ] && usable; then
    : # the lock or the project's metadata moved
elif [ ! -f $stamp ] && usable; then
    say "adopting the $venv that is here"
else
    python=$(find_python)
    say "making $venv with $("$python" -V)"
    "$python" -m venv --clear $venv
fi

say "installing the locked packages (a minute or so the first time)"
rm -f $stamp
# What is unpacked lies beside where it goes: /tmp may be full, small, or on another file system.
TMPDIR=$place/$venv/unpacked
export TMPDIR
rm -rf "$TMPDIR" && mkdir "$TMPDIR"
# --only-binary: building a source package would run code, and fetch build requirements, that no hash here covers.
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
    -r requirements/dev.txt ||
    refuse "the locked packages could not be installed. Is a package index reachable? Is this Linux (x86_64 or aarch64," \
        "glibc 2.28 or newer) or macOS on arm64? Others lack built packages."
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --no-index --no-deps --no-build-isolation -e .

# buf reads imports from a folder; these come with googleapis-common-protos, so that it needs no network (buf.yaml).
"$venv/bin/python" tools/protos.py third-party $venv/protos

rm -rf "$TMPDIR"
key >$stamp
