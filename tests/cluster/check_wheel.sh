#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel with the program and all libraries, in an environment that has nothing else (python/tests/try_pip.sh). It
# compiles everything and asks a package index: without one it is skipped.
# usage: check_wheel.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

exec "$2/python/tests/try_pip.sh"
