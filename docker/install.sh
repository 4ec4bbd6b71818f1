#!/bin/sh
# What the image installs, and CI in its place:
#
#     install.sh packages PREFIX REQUIREMENTS   a virtual environment with the packages of a lock file, each by its hash
#     install.sh wheel PREFIX WHEEL             edgemill in it
#     install.sh kernels PREFIX                 its compiled kernels, for all usual processors of this architecture
#
# Separate steps, so that a change of edgemill alone leaves the layer of packages as it is. PYTHON names the interpreter.
set -eu

usage() {
    sed -n 's/^# \{0,5\}\(install.sh .*\)/usage: \1/p' "$0" >&2
    exit 2
}

case $#:${1-} in
2:kernels | 3:packages | 3:wheel) ;;
*) usage ;;
esac
step=$1 prefix=$2 what=${3-}
python=${PYTHON:-python3}

install() {
    "$python" -m pip --python "$prefix/bin/python" install --quiet --no-deps --disable-pip-version-check "$@"
}

case $step in
packages)
    "$python" -m venv --without-pip "$prefix"
    install --require-hashes --only-binary :all: --requirement "$what"
    ;;
wheel)
    install "$what"
    "$prefix/bin/edgemill" --version
    ;;
kernels) # those that kernels/runtime/cache.py looks for (PORTABLE), which adds no features of this processor
    case $(uname -m) in
    x86_64) processor=x86-64-v3 ;;
    *) processor=generic ;;
    esac
    NUMBA_CPU_NAME=$processor NUMBA_CPU_FEATURES='' EDGEMILL_CACHE_DIR=$prefix/share/edgemill "$prefix/bin/edgemill" warm
    ;;
esac
