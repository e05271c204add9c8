package commands

// Each script passes the words up to the cursor, the last one unfinished and without
// the shell's quoting, and gets lines of "candidate<TAB>explanation". The line
// filesMark says that file names belong here, too. What the shell inserts, the script
// quotes as the shell needs it.

const bashCompletion = `# bash completion for switchyard

# Splits the line up to the cursor as the shell does, and expands nothing. Sets words,
# the last of which stands at the cursor; keep, how much of that readline leaves alone,
# because it replaces only what comes after = : @ or an open quote; and quote, the
# quote that is open.
_switchyard_split() {
    local c word="" begun=""
    local -i i
    words=() quote="" keep=0
    for ((i = 0; i < ${#1}; i++)); do
        c=${1:i:1}
        if [[ $quote == "'" && $c != "'" ]]; then
            word+=$c
        elif [[ -n $quote && $c == "$quote" ]]; then
            quote=""
        elif [[ $c == "\\" ]]; then
            i+=1
            word+=${1:i:1} begun=1
        elif [[ -z $quote && $c == [\"\'] ]]; then
            quote=$c keep=${#word} begun=1
        elif [[ -z $quote && $c == [[:space:]] ]]; then
            [[ -n $begun ]] && words+=("$word")
            word="" begun="" keep=0
        else
            word+=$c begun=1
            if [[ -z $quote && $c == [=:@] && $COMP_WORDBREAKS == *"$c"* ]]; then
                keep=${#word}
            fi
        fi
    done
    words+=("$word")
}

_switchyard() {
    local line quote files=""
    local -i keep
    local -a words
    _switchyard_split "${COMP_LINE:0:COMP_POINT}"
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == "` + filesMark + `" ]]; then
            files=1
            continue
        fi
        line=${line%%$'\t'*}
        COMPREPLY+=("${line:keep}")
    done < <("${words[0]/#\~/$HOME}" ` + completionFlag + ` "${words[@]:1}" 2>/dev/null)
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null # readline quotes them itself
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "${words[${#words[@]}-1]:keep}")
    elif [[ -z $quote ]]; then
        for line in "${!COMPREPLY[@]}"; do
            printf -v "COMPREPLY[$line]" %q "${COMPREPLY[$line]}"
        done
    fi
}
complete -F _switchyard switchyard
`

const zshCompletion = `#compdef switchyard
# zsh completion for switchyard
_switchyard() {
    local line name about files=
    local -a found
    # PREFIX is the last word up to the cursor, without a quote that is still open.
    while IFS= read -r line; do
        if [[ $line == "` + filesMark + `" ]]; then
            files=1
            continue
        fi
        name=${line%%$'\t'*} about=${line#*$'\t'}
        found+=("${name//:/\\:}:$about")
    done < <("${(Q)words[1]/#\~/$HOME}" ` + completionFlag + ` "${(Q)words[@]:1:$((CURRENT-2))}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#found )) && _describe -t values switchyard found
    [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _switchyard ]]; then
    _switchyard "$@"
else
    compdef _switchyard switchyard
fi
`

const fishCompletion = `# fish completion for switchyard
function __switchyard_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (string unescape -- (commandline -ct))
    or set current (commandline -ct)
    for line in ($program ` + completionFlag + ` $words $current 2>/dev/null)
        if test "$line" = "` + filesMark + `"
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $line
        end
    end
end
complete -c switchyard -f -a '(__switchyard_complete)'
`
