# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # what it wants
# What gpu_check.sh runs one after the other, each with its share of the time. It is sourced, and wants `root`, `out`,
# `is_emulated`, `total` (seconds) and `shares`: names of steps, each with its part of a hundred, in their order.

verdicts=() # "NAME|WHAT" a step
commands=() # "NAME|COMMAND" of those that were run
num_failed=0
begun=$SECONDS

# limit_of NAME: seconds until those that later steps are sure of.
limit_of() {
    local i later=0 is_later=0
    for ((i = 0; i < ${#shares[@]}; i += 2)); do
        if ((is_later)); then later=$((later + shares[i + 1])); fi
        if [[ ${shares[i]} == "$1" ]]; then is_later=1; fi
    done
    echo $((total - (SECONDS - begun) - total * later / 100))
}

note() {
    verdicts+=("$1|$2")
    echo "== $1: $2"
}

fail() {
    num_failed=$((num_failed + 1))
    note "$1" "FAILED: $2"
}

# Most programs end with a line that counts.
last_line() {
    local line
    line=$(tail -n 1 "$1" | cut -c 1-100)
    case $line in
    *passed* | *failures* | *skip* | *"no GPU"*) echo ": $line" ;;
    esac
}

# step NAME COMMAND...: output goes to NAME.log; its end is shown where it fails, all of it with
# `is_shown`. Returns 0 if it passed, 77 if what it is run with cannot run here: its output matches
# `unusable`. Exit code 9 is for a tool's reports: with `known`, a list, the step passes if it has them
# all.
is_shown=0
unusable=""
known=""
step() {
    local name=$1 limit begin=$SECONDS code=0 log=$out/$1.log
    shift
    limit=$(limit_of "$name")
    if ((limit < 1)); then
        fail "$name" "no time was left for it"
        return 1
    fi
    commands+=("$name|${*/#"$root/"/}")
    echo "== $name, at most $limit s: ${*/#"$root/"/}"
    if ((is_shown)); then
        timeout --kill-after=5 "$limit" "$@" 2>&1 | tee "$log" || code=$?
    else
        timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 || code=$?
    fi
    judge "$name" "$code" $((SECONDS - begin)) "$limit"
}

# judge NAME CODE SECONDS LIMIT: what step returns.
judge() {
    local name=$1 code=$2 took=$3 limit=$4 log=$out/$1.log text
    if ((code == 9)) && [[ -n $known ]] &&
        text=$("$root/bench/known_reports.sh" "$name" "$log" "$known"); then
        note "$name" "passed in $took s: $text"
        return 0
    fi
    case $code in
    0) note "$name" "passed in $took s$(last_line "$log")" && return 0 ;;
    77) ((is_emulated)) && note "$name" "skipped$(last_line "$log")" && return 0 ;;
    esac
    if [[ -n $unusable ]] && text=$(grep -iE -m 1 "$unusable" "$log"); then
        text=${text##*skipped: }
        note "$name" "skipped: ${text::100}"
        return 77
    fi
    if ((!is_shown)); then tail -n 30 "$log"; fi
    case $code in
    124 | 137) fail "$name" "cut after $limit s" ;;
    77) fail "$name" "the program finds no GPU" ;;
    *) fail "$name" "exit code $code" ;;
    esac
    return 1
}
