#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many histories of check_living.sh, from number 1001 on; about a second each.
# usage: check_histories.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

BITSWEEP_HISTORIES=${BITSWEEP_HISTORIES:-1000} BITSWEEP_HISTORY=1001 exec "$2/tests/cluster/check_living.sh" "$@"
