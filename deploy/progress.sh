# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scripts, which source it: what takes long says on stderr how far it is, as the program does: a line that is
# rewritten on a terminal, elsewhere a plain line every ten seconds.

# counted_in LOG SECONDS: what ninja, make or pip have counted there, "[12/34] 35 %", and the time that is left.
counted_in() {
    tail -c 2000 "$1" | grep -aoE '^\[ *[0-9]+(/[0-9]+|%)\]' | tail -n 1 | tr '[]/%' '    ' | awk -v seconds="$2" '{
        done = $1
        total = NF > 1 ? $2 : 100
        if (NF > 1) printf ", %d of %d", done, total
        printf ", %d %%", 100 * done / total
        left = seconds * (total - done) / (done > 0 ? done : 1)
        if (20 * done >= total) printf left < 90 ? ", some %d s left" : ", some %d min left", left < 90 ? left : left / 60 + 0.5
    }' || true # nothing is counted yet
}

# watch_log TITLE LOG: until it is killed, or the script that started it is gone.
watch_log() {
    local begin=$SECONDS every=10 next text
    if [[ -t 2 ]]; then every=1; fi
    next=$((begin + every))
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        ((SECONDS >= next)) || continue
        next=$((SECONDS + every))
        text="$1, $((SECONDS - begin)) s$(counted_in "$2" $((SECONDS - begin)))"
        if [[ -t 2 ]]; then printf '\r%s\033[K' "$text" >&2; else echo "$text" >&2; fi
    done
}

# with_progress TITLE LOG COMMAND...: its output goes to LOG. In the foreground, so that Ctrl-C reaches it.
with_progress() {
    local title=$1 log=$2 code=0 watcher
    shift 2
    watch_log "$title" "$log" &
    watcher=$!
    "$@" >"$log" 2>&1 || code=$?
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    return "$code"
}
