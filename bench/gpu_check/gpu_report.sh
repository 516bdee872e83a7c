# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of gpu_check.sh and gpu_steps.sh, which are sourced together with this
# What machine it is, what its clock does meanwhile, and results.md, a section for bench/RESULTS_gpu.md.

# ask WHAT: a property of the first GPU, as nvidia-smi has it.
ask() {
    nvidia-smi --id=0 --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1 || true
}

# version_of COMMAND: of the lines of its --version that hold one the last, or the `lines`-th last.
version_of() {
    local text
    text=$("$1" --version 2>/dev/null | grep -E "[0-9]+\.[0-9]+" | tail -n "${lines:-1}" |
        head -n 1 || true)
    echo "${text:-missing}"
}

describe_machine() {
    gpu="emulated" driver="-"
    if ((!is_emulated)); then
        gpu=$(ask name) driver=$(ask driver_version)
        gpu=${gpu:-unknown: nvidia-smi does not answer} driver=${driver:-unknown}
    fi
    compiler=$(lines=2 version_of nvcc)
    echo "GPU:    $gpu"
    echo "driver: $driver"
    if ((!is_emulated)); then
        echo "memory: $(ask memory.total), used $(ask memory.used)"
        echo "clocks: at most $(ask clocks.max.sm), memory $(ask clocks.max.mem), $(ask power.limit)"
    fi
    echo "nvcc:   $compiler"
    echo "cmake:  $(version_of cmake)"
    echo "MPI:    $(version_of mpirun), $(command -v mpirun || true)"
    echo "cores:  $(nproc)"
    [[ ! -d $root/carried ]] || echo "libraries are taken from carried/"
    [[ ! -e $root/build/packed ]] || echo "programs are those of a pack, revision $(cat "$root/build/packed/revision")"
}

has_gpu() {
    local node
    nvidia-smi -L >/dev/null 2>&1 && return 0
    for node in /dev/nvidia[0-9]*; do [[ ! -e $node ]] || return 0; done
    return 1
}

# What every number of clocks hangs on.
clock_process=""
watch_clock() {
    ((!is_emulated)) || return 0
    nvidia-smi --id=0 --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits -lms 500 >"$out/clocks.csv" 2>/dev/null &
    clock_process=$!
}

end_watch() {
    [[ -z $clock_process ]] || kill "$clock_process" 2>/dev/null || true
    clock_process=""
}

# clock_line: at work, which takes more than half of the most power seen.
clock_line() {
    [[ -s $out/clocks.csv ]] || return 0
    sort -t , -k 2 -g "$out/clocks.csv" | awk -F ', *' '
        $1 + 0 > 0 {clock[++n] = $1; power[n] = $2}
        END {
            for (i = 1; i <= n && power[i] < power[n] / 2; i++);
            least = most = clock[i]
            for (; i <= n; i++) {if (clock[i] < least) least = clock[i]; if (clock[i] > most) most = clock[i]}
            if (n) printf "Clock of multiprocessors at work: %d to %d MHz, at most %.0f W.\n", least, most, power[n]
        }'
}

# bench_table FILE: the table of `bench device` in Markdown, the lines around it as they are.
bench_table() {
    awk '
        /^# / {sub(/^# /, ""); if ($1 != "case" && $1 != "cases" && !/^ +(ms|%)/) notes = notes "    " $0 "\n"; next}
        NF == 15 && $2 ~ /^[0-9]+$/ {
            if (!n++) {
                print "| case | rows | queries | best | ms | spread % | n | queries/s | GB/s | of limit % | G/s | of limit % | limit | select % | wrong values |"
                print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |"
            }
            line = "|"
            for (i = 1; i <= NF; i++) line = line " " $i " |"
            print line
        }
        END {printf "\n%s", notes}' "$1"
}

# shown FILE: Markdown that a step prints, else its text as it is.
shown() {
    if grep -q '^| ' "$1"; then
        cat "$1"
    else
        sed 's/^/    /' "$1"
    fi
}

write_results() {
    local revision line name
    revision=$(cat "$root/build/packed/revision" 2>/dev/null ||
        git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    {
        echo "## GPU: $gpu (\`bench/gpu_check.sh\`)"
        echo
        echo "$(date +%F), \`$command_line\`, revision $revision, driver $driver, $compiler."
        ((!is_emulated)) || echo "Emulated: no time means anything."
        clock_line
        echo
        echo "| step | result |"
        echo "| --- | --- |"
        for line in "${verdicts[@]}"; do echo "| ${line%%|*} | ${line#*|} |"; done
        printf '\nCommands:\n\n'
        for line in ${commands[@]+"${commands[@]}"}; do echo "    ${line%%|*}: ${line#*|}"; done
        for name in "${reported[@]}"; do
            [[ -s $out/$name.log ]] || continue
            printf '\n### %s\n\n' "$name"
            if [[ $name == bench* ]] && grep -q '^# cases' "$out/$name.log"; then bench_table "$out/$name.log"; else shown "$out/$name.log"; fi
        done
    } >"$out/results.md"
}
