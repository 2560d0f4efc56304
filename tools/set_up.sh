#!/bin/sh
# Sets up .venv by the locks in requirements/, and does nothing where that is done. `runtime` installs what serving,
# playing, replay, reconciliation and the log need; `dev`, which is meant where nothing is said, installs that and what
# tests and the certification need. Where the runtime set is installed, `dev` adds to it. Needs a supported Python with
# venv; everything else is installed, by hash, into .venv.
set -eu
cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/set-up # what was installed: place and Python, then one line for each set
set_=${1:-dev}
begun=$(date +%s)

# The Pythons that are locked and tested; the same range as `requires-python` (tests/unit/test_tidy.py compares them).
first=3.11
last=3.13
in_range="import sys; sys.exit(not ($(echo $first | tr . ,)) <= sys.version_info[:2] <= ($(echo $last | tr . ,)))"

say() { echo "set-up: $*" >&2; }
refuse() { say "$*"; exit 1; }

locks_of() {
    case $1 in
        runtime) echo requirements/runtime.txt requirements/build.txt ;;
        dev) echo requirements/dev.txt ;; # a test compares: it holds the two others
        *) say "there is no set '$1' of packages: say runtime or dev" && exit 2 ;;
    esac
}
locks=$(locks_of "$set_")

# What .venv must be made again for: its place (scripts in it hold their path), its Python, the locks, the project's own metadata.
place=$(pwd -P)
made() { echo "$place" && "$venv/bin/python" -VV; }
# shellcheck disable=SC2046 # names without spaces
installed() { echo "$1 $(cat $(locks_of "$1") pyproject.toml tools/set_up.sh | cksum)"; }
is_set_up() { [ "$(made 2>/dev/null)" = "$(head -n 2 $stamp 2>/dev/null)" ] && grep -qxF "$(installed "$1")" $stamp; }

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

if is_set_up "$set_"; then exit 0; fi

if is_set_up runtime; then
    runtime_is_there=yes
elif [ -f $stamp ] && [ "$(head -n 1 $stamp)" = "$place" ] && usable; then
    : # a lock or the project's metadata moved
elif [ ! -f $stamp ] && usable; then
    say "adopting the $venv that is here"
else
    python=$(find_python)
    say "making $venv with $("$python" -V)"
    "$python" -m venv --clear $venv
fi

# Until the end nothing is said to be installed but what stays as it is.
if [ "${runtime_is_there-}" ]; then
    say "adding what tests and the certification need (a minute or so the first time)"
    { made && installed runtime; } >$stamp
elif [ "$set_" = runtime ]; then
    say "installing what serving needs (half a minute or so the first time)"
    rm -f $stamp
else
    say "installing the locked packages (a minute or so the first time)"
    rm -f $stamp
fi

# What is unpacked lies beside where it goes: /tmp may be full, small, or on another file system.
TMPDIR=$place/$venv/unpacked
export TMPDIR
rm -rf "$TMPDIR" && mkdir "$TMPDIR"
# --only-binary: building a source package would run code, and fetch build requirements, that no hash here covers.
# shellcheck disable=SC2046 # names without spaces
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --require-hashes --only-binary :all: \
    $(printf -- '-r %s ' $locks) ||
    refuse "the locked packages could not be installed ($locks). Is a package index reachable? Is this Linux (x86_64 or" \
        "aarch64, glibc 2.28 or newer) or macOS on arm64? Others lack built packages."
[ "${runtime_is_there-}" ] ||
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --no-index --no-deps --no-build-isolation -e .

# buf reads imports from a folder; these come with googleapis-common-protos, so that it needs no network (buf.yaml).
[ "$set_" = runtime ] || "$venv/bin/python" tools/protos.py third-party $venv/protos

rm -rf "$TMPDIR"
{
    made
    installed runtime
    [ "$set_" = runtime ] || installed dev
} >$stamp
say "done in $(($(date +%s) - begun)) s"
