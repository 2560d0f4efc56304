#!/bin/sh
# Sets up .venv-web, the environment of the reference operator (examples/operator), by its own lock, and does nothing
# where that is done. It stands beside .venv, whose Python it uses: what the game server runs on is not touched.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-web
lock=examples/operator/requirements.txt
stamp=$venv/set-up
state() { pwd -P && .venv/bin/python -VV && cksum <$lock && cksum <tools/set_up_web.sh; }

[ -x .venv/bin/python ] || { echo "set-up: .venv is missing: run \`make setup-runtime\` first" >&2; exit 1; }
if [ -f $stamp ] && [ "$(state)" = "$(cat $stamp)" ]; then exit 0; fi
echo "set-up: making $venv (a few seconds)" >&2
rm -rf $venv
.venv/bin/python -m venv $venv
# --only-binary: building a source package would run code that no hash here covers.
$venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes --only-binary :all: -r $lock || {
    echo "set-up: the locked packages could not be installed ($lock). Is a package index reachable?" >&2
    exit 1
}
state >$stamp
