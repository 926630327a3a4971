#!/bin/sh
# Install casnap from this bundle, without a network.
#
#   sh install.sh [PREFIX]     PREFIX: /opt/casnap for root, else ~/.local/opt/casnap
#
# It makes a virtual environment at PREFIX and touches nothing else; removing PREFIX uninstalls it.
# PYTHON=/path/to/python chooses the interpreter.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
wanted=$(cat "$here/PYTHON")
if [ "$(id -u)" -eq 0 ]; then
    default=/opt/casnap
else
    default=$HOME/.local/opt/casnap
fi
prefix=${1:-$default}

fail() {
    echo "error: cannot install casnap: $1" >&2
    exit 1
}

if command -v sha256sum >/dev/null 2>&1; then
    (cd "$here" && sha256sum --quiet -c SHA256SUMS) || fail "the bundle is damaged"
fi

is_wanted() {
    [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$wanted" ]
}

python=
for candidate in ${PYTHON:+"$PYTHON"} "python$wanted" python3 python; do
    if is_wanted "$candidate"; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "this bundle needs Python $wanted, and there is none (PYTHON=... names one)"

"$python" -m venv "$prefix" || fail "$python cannot make a virtual environment (is its venv package installed?)"
"$prefix/bin/python" -m pip --isolated --disable-pip-version-check install --quiet \
    --no-index --find-links "$here/wheels" casnap || fail "pip failed; its message is above"

echo "installed $("$prefix/bin/casnap" --version) in $prefix"
echo "to call it by name: ln -s $prefix/bin/casnap /usr/local/bin/casnap (or into any directory of your PATH)"
