#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/style.sh finds what it is for: a small tree passes, and each fault that is put into it is named by its line.
# usage: check_style.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
source=$(realpath "$2")
tree=$folder/tree
mkdir -p "$tree"/{common/base,common/job,kernels/one,kernels/two,deploy}
cp "$source"/deploy/{style.sh,structure.awk,spdx.sh} "$tree/deploy"
cp "$source/.clang-format" "$tree"
cp "$source"/common/*.proto "$tree/common"

# put FILE TEXT: a header, with what all of them have.
put() {
    local guard
    guard=$(tr 'a-z/.' 'A-Z__' <<<"$1")
    printf '// SPDX-License-Identifier: Apache-2.0\n#ifndef %s\n#define %s\n\n%s\n\n#endif\n' "$guard" "$guard" "$2" \
        >"$tree/$1"
}

# The tree as it should be; each case changes one file of it.
restore() {
    put kernels/one/first.h 'int bsw_first(void);'
    put kernels/two/second.h $'#include "kernels/one/first.h"\n\nint bsw_second(void);'
    put common/base/table.h $'// One tenant: this test.\nstruct bsw_door {\n    int (*open)(void);\n    int (*close)(void);\n};'
    put common/base/values.h $'struct bsw_point {\n    int a, b, c, d, e, f, g;\n};'
    rm -f "$tree/common/base/values.c" "$tree/common/job/later.h" "$tree/kernels/two/first.h"
}

style() {
    bash "$tree/deploy/style.sh" >"$folder/stdout" 2>"$folder/stderr"
}

# found WHAT PATTERN: by one run, which ends with 1.
found() {
    local code=0
    style || code=$?
    if [[ $code == 1 ]] && grep -qE "$2" "$folder/stdout"; then pass; else complain "$1: exit code $code" "$folder/stdout"; fi
    restore
}

restore
if style; then pass; else complain "a tree without a fault" "$folder/stdout"; fi

printf '\t\n' >>"$tree/kernels/one/first.h"
found "a tab" '^kernels/one/first\.h:8: tab$'

put kernels/one/first.h "// O""f a row, which is what.
int bsw_first(void);"
found "a comment without its subject" '^kernels/one/first\.h:5: a comment that begins with'

put kernels/one/first.h "int bsw_first(void); // O""f a row"
found "one at the end of a line" '^kernels/one/first\.h:5: a comment that begins with'

put kernels/one/first.h $'#include "kernels/two/second.h"\n\nint bsw_first(void);'
found "a circle of rooms" '^kernels/(one/first|two/second)\.h:5: kernels/(one|two) includes kernels/(one|two), which leads back'

put common/base/table.h $'struct bsw_door {\n    int (*open)(void);\n    int (*close)(void);\n};'
found "a table for nobody" '^common/base/table\.h:5: bsw_door has fewer than two tenants'

cat >"$tree/common/base/values.c" <<'END'
// SPDX-License-Identifier: Apache-2.0
#include "common/base/values.h"

const struct bsw_point bsw_origin = {1, 2, 3, 4, 5, 6, 7};
END
found "values without names" '^common/base/values\.c:4: 7 values without names'

put common/base/values.h "$(printf 'int bsw_number_%d(void);\n' {1..600})"
found "a long file" '^common/base/values\.h:606: more than 600 lines'

put common/base/values.h '#include "common/job/later.h"'
put common/job/later.h 'int bsw_later(void);'
found "an include that climbs" '^common/base/values\.h:5: common/base may not include common/job'

cp "$tree/kernels/one/first.h" "$tree/kernels/two/first.h"
found "one name for two files" '^kernels/two/first\.h:1: same name as kernels/one/first\.h'
finish
