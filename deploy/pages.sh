#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Man pages and completion of bash, zsh and fish, made of what the program's --help says, which option tables print.
# usage: pages.sh BITSWEEP_BINARY FOLDER
#
# Writes FOLDER/bitsweep.1, FOLDER/bitsweep-COMMAND.1, FOLDER/bitsweep.bash, FOLDER/_bitsweep (zsh) and FOLDER/bitsweep.fish.
set -euo pipefail

program=$(realpath "$1")
folder=$2
mkdir -p "$folder"
export OMP_NUM_THREADS=1
version=$("$program" --version)
mapfile -t commands < <("$program" --help | sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p')
if ((${#commands[@]} < 10)); then
    echo "pages.sh: $program --help lists ${#commands[@]} commands only" >&2
    exit 1
fi

# Options of a help text from stdin, one a line: --name, value, help.
separator=$'\x1f'
options() {
    awk -v separator="$separator" '
        function flush() {if (name != "") print name separator value separator text}
        /^  --/ {
            flush()
            line = substr($0, 3)
            left = line
            text = ""
            if (substr(line, 35, 2) ~ /^ [^ ]/) {
                left = substr(line, 1, 34)
                text = substr(line, 36)
                sub(/^ +/, "", text)
                sub(/ +$/, "", left)
            }
            split(left, words, " ")
            name = words[1]
            value = substr(left, length(name) + 2)
            next
        }
        /^ +[^ ]/ && name != "" {
            sub(/^ +/, "")
            text = text (text == "" ? "" : " ") $0
        }
        END {flush()}'
}

# What a line of roff may begin with or hold, made plain.
plain() {
    sed -E 's/\\/\\e/g; s/-/\\-/g' | sed -E "s/^([.'])/\\\\\\&\\1/"
}

head_of() { # NAME SUMMARY
    printf '.TH %s 1 "" "%s" "bitsweep"\n.SH NAME\n%s \\- %s\n' "$(tr '[:lower:]' '[:upper:]' <<<"$1")" "$version" \
        "$(plain <<<"$1")" "$(plain <<<"$2")"
}

# In the order of the commands they run in one folder, as a test does.
examples_of() { # COMMAND
    case $1 in
    synth) echo "bitsweep synth --count 10K --dims 96 --spectrum 0.625 --out base.fbin --queries 100 --queries-out queries.fbin" ;;
    encode)
        echo "bitsweep encode --base base.fbin --metric l2 --bits 3 --index idx"
        echo "bitsweep encode --base base.fbin --metric l2 --lists auto --index lists"
        ;;
    search)
        echo "bitsweep search --index idx --queries queries.fbin --k 10 --out result"
        echo "bitsweep search --index lists --queries queries.fbin --recall 0.9 --out result_lists"
        ;;
    groundtruth) echo "bitsweep groundtruth --base base.fbin --queries queries.fbin --metric l2 --k 10 --out truth" ;;
    eval) echo "bitsweep eval --results result --groundtruth truth" ;;
    info) echo "bitsweep info idx" ;;
    convert)
        echo "bitsweep convert --in base.fbin --rows 0:1000 --out some.npy"
        echo "bitsweep convert --in result --out result.ivecs"
        ;;
    train) echo "bitsweep train --base base.fbin --metric cosine --epochs 1 --model model.rbe" ;;
    calibrate) echo "bitsweep calibrate --index lists --queries queries.fbin" ;;
    verify) echo "bitsweep verify idx" ;;
    plan) echo "bitsweep plan --rows 1G --dims 96 --bits 3 --vectors uint8 --ranks 8" ;;
    sweep) echo "bitsweep sweep --base base.fbin --queries queries.fbin --metric l2 --bits 2,3 --oversample 1,5 --folder sweep" ;;
    bench) echo "bitsweep bench memory" ;;
    esac
}

page_of() { # COMMAND
    local name value text summary
    "$program" "$1" --help all >"$folder/help"
    summary=$(sed -n '1s/^bitsweep [a-z]*: //p' "$folder/help")
    head_of "bitsweep-$1" "$summary"
    printf '.SH SYNOPSIS\n.B bitsweep %s\n' "$1"
    if [[ $1 == bench ]]; then
        printf '.I WHAT\n[\\fIoptions\\fR]\n.SH WHAT\n'
        sed -nE 's/^  ([a-z]+) +([a-z].*)/\1\t\2/p' "$folder/help" | while IFS=$'\t' read -r name text; do
            printf '.TP\n.B %s\n%s\n' "$name" "$(plain <<<"$text")"
        done
    else
        printf '[\\fIoptions\\fR]\n.SH OPTIONS\n'
        options <"$folder/help" | tee "$folder/options" | while IFS=$separator read -r name value text; do
            printf '.TP\n.B %s' "$(plain <<<"$name")"
            if [[ -n $value ]]; then printf ' \\fI%s\\fR' "$(plain <<<"$value")"; fi
            printf '\n%s\n' "$(plain <<<"$text")"
        done
    fi
    if [[ -n $(examples_of "$1") ]]; then
        printf '.SH EXAMPLES\n.nf\n'
        examples_of "$1" | plain
        printf '.fi\n'
    fi
    printf '.SH EXIT STATUS\n'
    sed -n '/^Exit codes: /,$p' <<<"$main_help" | sed 's/^Exit codes: //' | plain
    printf '.SH SEE ALSO\n.BR bitsweep (1)\n'
}

main_page() {
    local name text
    head_of bitsweep "$(sed -n '1s/^[^:]*: //p' <<<"$main_help")"
    printf '.SH SYNOPSIS\n.B bitsweep\n.I COMMAND\n[\\fIoptions\\fR]\n.SH COMMANDS\n'
    sed -nE 's/^  ([a-z]+) +([a-z].*)/\1\t\2/p' <<<"$main_help" | while IFS=$'\t' read -r name text; do
        printf '.TP\n.BR bitsweep\\-%s (1)\n%s\n' "$name" "$(plain <<<"$text")"
    done
    printf '.SH EXIT STATUS\n'
    sed -n '/^Exit codes: /,$p' <<<"$main_help" | sed 's/^Exit codes: //' | plain
}

# Words of every command, and of options that are one of several.
completion() {
    local command
    cat <<'END'
# bash completion for bitsweep
_bitsweep() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    if ((COMP_CWORD == 1)); then
END
    printf '        words="%s"\n' "${commands[*]}"
    cat <<'END'
    else
        case ${COMP_WORDS[1]}$before in
END
    for command in "${commands[@]}"; do
        if [[ ! -s $folder/options.$command ]]; then continue; fi
        awk -F"$separator" -v command="$command" '$2 ~ /^[a-z0-9-]+(\|[a-z0-9-]+)+$/ {
            gsub(/\|/, " ", $2)
            printf "        %s%s) words=\"%s\" ;;\n", command, $1, $2
        }' "$folder/options.$command"
    done
    cat <<'END'
        esac
        if [[ -z $words && $word == -* ]]; then
            case ${COMP_WORDS[1]} in
END
    for command in "${commands[@]}"; do
        if [[ ! -s $folder/options.$command ]]; then continue; fi
        printf '            %s) words="%s" ;;\n' "$command" "$(cut -d"$separator" -f1 "$folder/options.$command" | tr '\n' ' ')"
    done
    cat <<'END'
            esac
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    if [[ -z $words ]]; then mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}
complete -o filenames -F _bitsweep bitsweep
END
}

# What zsh or fish shows of a text: its first clause, without what their quotes mean.
short() {
    sed -E 's/;.*//; s/: /, /g; s/ *\[[^]]*\]$//' <<<"$1" | tr -d "[]:'\"\\\\"
}

summary_of() { # COMMAND
    short "$(sed -nE "s/^  $1 +([a-z].*)/\\1/p" <<<"$main_help")"
}

words_of() { # VALUE: of one that is one of several words
    if [[ $1 =~ ^[a-z0-9-]+(\|[a-z0-9-]+)+$ ]]; then tr '|' ' ' <<<"$1"; fi
}

zsh_completion() {
    local command name value text words
    printf '#compdef bitsweep\nlocal -a commands\ncommands=(\n'
    for command in "${commands[@]}"; do printf "    '%s:%s'\n" "$command" "$(summary_of "$command")"; done
    # shellcheck disable=SC2016 # zsh's own
    printf ')\nif ((CURRENT == 2)); then\n    _describe command commands\n    return\nfi\ncase $words[2] in\n'
    for command in "${commands[@]}"; do
        if [[ ! -s $folder/options.$command ]]; then continue; fi
        printf "%s)\n    _arguments '*:file:_files'" "$command"
        while IFS=$separator read -r name value text; do
            words=$(words_of "$value")
            if [[ -n $words ]]; then
                value=":value:($words)"
            elif [[ -n $value ]]; then
                value=":$(tr -d "[]:'" <<<"$value"):_files"
            fi
            printf " \\\\\n        '%s[%s]%s'" "$name" "$(short "$text")" "$value"
        done <"$folder/options.$command"
        printf '\n    ;;\n'
    done
    printf 'esac\n'
}

fish_completion() {
    local command name value text words
    for command in "${commands[@]}"; do
        printf "complete -c bitsweep -n __fish_use_subcommand -f -a %s -d '%s'\n" "$command" "$(summary_of "$command")"
    done
    for command in "${commands[@]}"; do
        if [[ ! -s $folder/options.$command ]]; then continue; fi
        while IFS=$separator read -r name value text; do
            words=$(words_of "$value")
            if [[ -n $words ]]; then
                value=" -x -a '$words'"
            elif [[ -n $value ]]; then
                value=" -r"
            fi
            printf "complete -c bitsweep -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'\n" "$command" "${name#--}" \
                "$value" "$(short "$text")"
        done <"$folder/options.$command"
    done
}

main_help=$("$program" --help)
for command in "${commands[@]}"; do
    : >"$folder/options"
    page_of "$command" >"$folder/bitsweep-$command.1"
    mv "$folder/options" "$folder/options.$command"
done
completion >"$folder/bitsweep.bash"
zsh_completion >"$folder/_bitsweep"
fish_completion >"$folder/bitsweep.fish"
main_page >"$folder/bitsweep.1" # last: it says that all are there
rm -f "$folder/help" "$folder"/options.*
