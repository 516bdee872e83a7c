# SPDX-License-Identifier: Apache-2.0
# Structure of the product's C and CUDA, for style.sh and counts.sh: all sources are arguments; one line for each find.
#   WHAT=circles    rooms that include each other, whatever the way, but for pairs "FROM TO" in the lines of KNOWN
#   WHAT=count, WHAT=rooms    how many circles, how many rooms in circles
#   WHAT=tenants    tables of functions that fewer than two sources fill in, without a reason: "One tenant: ..." in the
#                   comment above the struct
#   WHAT=values     struct initialisers of more than six values in a row without names
#   WHAT=backend    functions of struct bsw_backend, and how many of its tenants have each

function fail(line, what) { print FILENAME ":" line ": " what }

# ---- circles -------------------------------------------------------------------------------------

# A room is a folder, but what lies in shard/ is two: the service, and the seam that it and its back ends share; and
# the header of the library is one.
function room(file) {
    if (file ~ /^shard\/(shard_service|probe)[^\/]*$/) return "shard/service"
    if (file == "coordinator/bitsweep.h") return "coordinator/face"
    sub(/\/[^\/]*$/, "", file)
    return file
}

function note_include(    quoted, from, to) {
    split($0, quoted, "\"")
    from = room(FILENAME)
    to = room(quoted[2])
    if (from == to || (from, to) in reached || index(KNOWN, "\n" from " " to "\n")) return
    reached[from, to] = 1
    place[from, to] = FILENAME ":" FNR
    rooms[from]
    rooms[to]
}

function follow_circles(    a, b, via) {
    for (via in rooms)
        for (a in rooms)
            if ((a, via) in reached)
                for (b in rooms)
                    if ((via, b) in reached) reached[a, b] = 1
}

# How many circles there are, each as large as it is; how many rooms are in one.
function count_circles(    a, b, circles, num_rooms) {
    for (a in rooms) {
        if (!((a, a) in reached)) continue
        num_rooms++
        if (!(a in counted)) circles++
        for (b in rooms) if ((a, b) in reached && (b, a) in reached) counted[b]
    }
    print (WHAT == "count" ? circles : num_rooms) + 0
}

function tell_circles(    pair) {
    for (pair in place) {
        split(pair, way, SUBSEP)
        if ((way[2], way[1]) in reached)
            print place[pair] ": " way[1] " includes " way[2] ", which leads back to it"
    }
}

# ---- tables of functions -------------------------------------------------------------------------

function note_table(    name) {
    if (/^\/\// || /^ ?\*/) comment = comment $0
    if (/^struct bsw_[a-z0-9_]+ \{/) {
        table = $2
        line = FNR
        has_reason = comment ~ /One tenant: /
        num_functions = 0
    }
    if (table != "" && /\(\*[a-z0-9_]+\)\(/) num_functions++
    if (table != "" && /^    bsw_[a-z0-9_]+_fn \*?[a-z0-9_]+;/) num_functions++
    if (/^\};/) {
        if (table != "" && num_functions > 1 && FILENAME ~ /\.h$/) {
            tables[table] = FILENAME ":" line
            reasons[table] = has_reason
        }
        table = ""
    }
    if (!/^\/\// && !/^ ?\*/) comment = ""
    # Kernels: a table a level, which macros fill in where they are short.
    if (match($0, /^BSW_KERNEL_LEVELS\([a-z0-9_]+\)/)) tenants["bsw_" substr($0, 19, RLENGTH - 19) "_table"] += 2
    if (match($0, /struct bsw_[a-z0-9_]+ [a-z0-9_]+(\[[^\]]*\])? = \{/)) {
        name = substr($0, RSTART)
        split(name, words, " ")
        if (!((words[2], FILENAME) in filled)) tenants[words[2]]++
        filled[words[2], FILENAME]
    }
}

function tell_tenants(    name) {
    for (name in tables)
        if (tenants[name] < 2 && !reasons[name])
            print tables[name] ": " name " has fewer than two tenants: say why (One tenant: ...)"
}

# ---- values without names ------------------------------------------------------------------------

# Reads an initialiser from its `{` on, and tells of values in the braces at the depth where structs lie.
function read_values(text, line, depth_of_structs,    i, c, depth, inside, lines) {
    lines = 0
    for (i = 1;; i++) {
        if (i > length(text)) {
            if ((getline next_line) <= 0) return
            lines++
            sub(/\/\/.*/, "", next_line)
            text = next_line
            i = 1
            if (text == "") { i = 0; continue }
        }
        c = substr(text, i, 1)
        if (is_text) {
            if (c == "\\") i++
            else if (c == "\"") is_text = 0
            continue
        }
        if (c == "\"") { is_text = 1; has_value = 1; continue }
        if (c == "(" || c == "[") inside++
        if (c == ")" || c == "]") inside--
        if (c == "{") {
            depth++
            if (depth == depth_of_structs) { num = 0; named = 0; has_value = 0; begun = line + lines; continue }
        }
        if (depth == depth_of_structs && !inside) {
            if (c == "." && !has_value) named = 1
            if (c == "," || c == "}") {
                num += has_value
                has_value = 0
            } else if (c !~ /[ \t]/) has_value = 1
            if (c == "}" && num > 6 && !named) fail(begun, num " values without names")
        }
        if (c == "}" && --depth == 0) return
    }
}

function note_values(    rest, is_array) {
    if (!match($0, /(struct [a-z0-9_]+ [a-z0-9_]+(\[[^\]]*\])* = |\(struct [a-z0-9_]+(\[\])?\))\{/)) return
    rest = substr($0, RSTART, RLENGTH)
    is_array = rest ~ /\]/
    sub(/\/\/.*/, "", rest)
    rest = substr($0, RSTART + RLENGTH - 1)
    sub(/\/\/.*/, "", rest)
    is_text = 0
    read_values(rest, FNR, is_array ? 2 : 1)
}

# ---- back ends -----------------------------------------------------------------------------------

function note_backend() {
    if (FILENAME == "shard/backend.h") {
        if (/^struct bsw_backend \{/) is_in = 1
        if (is_in && match($0, /\(\*[a-z_0-9]+\)\(/)) functions[substr($0, RSTART + 2, RLENGTH - 4)] = 0
        if (/^\};/) is_in = 0
    }
    if (/^const struct bsw_backend /) is_in = 2
    if (is_in == 2) {
        for (text = $0; match(text, /\.[a-z_0-9]+ = /); text = substr(text, RSTART + RLENGTH))
            given[substr(text, RSTART + 1, RLENGTH - 4)]++
        if (/^\}|\};/) is_in = 0
    }
}

WHAT ~ /^(circles|count|rooms)$/ && /^#include "(common|kernels|shard|coordinator|bench)\// {note_include()}
WHAT == "tenants" {note_table()}
WHAT == "values" {note_values()}
WHAT == "backend" {note_backend()}

END {
    if (WHAT ~ /^(circles|count|rooms)$/) follow_circles()
    if (WHAT == "circles") tell_circles()
    if (WHAT ~ /^(count|rooms)$/) count_circles()
    if (WHAT == "tenants") tell_tenants()
    if (WHAT == "backend") for (name in functions) print name, given[name] + 0
}
