# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # what is not set here is the script's
# Answers that must never change: tests/data/identity.txt has a line for each code, "NAME CODES ANSWERS", the
# beginnings of two SHA-256. check_identity.sh and bench/gpu_identity.sh source this and set
#   recorded          that file
#   new_digests       a file for this run's lines
# The caller has complain WHAT and pass. With RECORD=1 in the environment the run's lines replace those recorded.
#
# Axes of saq are LAPACK's, whose last bits depend on OpenBLAS's version and kernels. So these take kernels that all
# x86 CPUs have, and where the version or the CPU is another one, answers are compared only if the codes are the same.
export OPENBLAS_CORETYPE=Prescott
lapack="$(pkg-config --modversion openblas 2>/dev/null || echo none)-$(uname -m)"

# digest_of FILE...: of all of them together.
digest_of() {
    cat "$@" | sha256sum | head -c 16
}

# check_digest NAME INDEX ANSWER...
check_digest() {
    local name=$1 index=$2 codes answers found
    shift 2
    codes=$(digest_of "$index"/*.codes)
    answers=$(digest_of "$@")
    echo "$name $codes $answers" >>"$new_digests"
    [[ -z ${RECORD:-} ]] || return 0
    found=$(grep "^$name " "$recorded" || true)
    if [[ $found == "$name $codes $answers" ]]; then
        pass
    elif [[ $found == "$name $codes "* ]]; then
        complain "$name: other answers than ${recorded##*/} has"
    elif grep -qx "# $lapack" "$recorded" || [[ -z $found || $name == *xfbq* ]]; then
        complain "$name: other codes than ${recorded##*/} has"
    else
        echo "$name: made with another OpenBLAS than ${recorded##*/} has, not compared"
    fi
}

# record_digests: the run's lines beside those of other names.
record_digests() {
    [[ -n ${RECORD:-} ]] || return 0
    {
        echo "# $lapack"
        { cat "$new_digests" && sed '/^#/d' "$recorded"; } | LC_ALL=C sort -u -k1,1
    } >"$new_digests.all"
    cp "$new_digests.all" "$recorded"
}
