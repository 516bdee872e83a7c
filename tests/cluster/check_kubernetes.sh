#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The manifests of deploy/kubernetes: fields and what jobs rely on (manifests.py); the commands in them are ones that
# run.sh and bitsweep take; faults are found.
# usage: check_kubernetes.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
checker=$(dirname "$0")/manifests.py
manifests=("$2"/deploy/kubernetes/*.yaml)

code=0
python3 "$checker" "${manifests[@]}" >"$folder/stdout" 2>"$folder/stderr" || code=$?
if ((code == 77)); then cat "$folder/stdout" && exit 77; fi
if ((code == 0)) && ((${#manifests[@]} == 2)); then pass; else complain "the manifests" "$folder/stdout"; fi

# broken WHAT FILE EDIT PATTERN: with that edit the checker finds it.
broken() {
    sed -E "$3" "$2" >"$folder/broken.yaml"
    if cmp -s "$2" "$folder/broken.yaml"; then
        complain "$1: the edit changes nothing"
    elif python3 "$checker" "$folder/broken.yaml" >"$folder/stdout" || ! grep -qE -e "$4" "$folder/stdout"; then
        complain "$1 is not found" "$folder/stdout"
    else
        pass
    fi
}

mpi=$2/deploy/kubernetes/mpi_job.yaml
one=$2/deploy/kubernetes/one_node.yaml
broken "an unknown field" "$mpi" 's/slotsPerWorker/slotsPerPod/' 'slotsPerPod: no such field'
broken "a wrong word" "$mpi" 's/WaitForWorkersReady/Wait/' "'Wait' is not one of"
broken "a wrong type" "$mpi" 's/backoffLimit: 0/backoffLimit: "0"/' 'is not int'
broken "too few slots" "$mpi" 's/replicas: 4/replicas: 3/' '6 slots'
broken "a launcher that does not wait" "$mpi" 's/WaitForWorkersReady/AtStartup/' 'does not wait'
broken "repeats of final failures" "$mpi" 's/backoffLimit: 0/backoffLimit: 3/' 'repeat a failure'
broken "a volume that is not there" "$mpi" 's/- name: shm/- name: shared/' 'no volume shm'
broken "a missing exit code" "$one" 's/65, //' 'are final'
broken "root" "$one" '/runAsNonRoot/d' 'as root'

# The commands, up to the files, which are not here.
mkdir "$folder/data"
commands=$(python3 - "${manifests[@]}" <<'PYTHON'
import sys, yaml
for file in sys.argv[1:]:
    job = yaml.safe_load(open(file))
    spec = job["spec"].get("template") or job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    print(" ".join(spec["spec"]["containers"][0]["args"]))
PYTHON
)
num_commands=0
while read -ra words; do
    num_commands=$((num_commands + 1))
    for ((i = 0; i < ${#words[@]}; i++)); do
        if [[ ${words[i]} == search ]]; then break; fi
    done
    said=$(cd "$folder/data" && "$program" "${words[@]:i}" 2>&1 >/dev/null) || true
    if [[ $said == *idx*"No such file"* ]]; then pass; else complain "$num_commands: $said"; fi
done <<<"$commands"
if ((num_commands == 2)); then pass; else complain "$num_commands commands"; fi
finish
