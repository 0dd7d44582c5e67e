"""``mcphost completion``: prints the script that lets a shell complete command lines of mcphost."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from mcphost.cli.output import Outcome
from mcphost.cli.run import finish

_BASH: Final = """\
# Completion of mcphost in bash. To load it, put this into ~/.bashrc:
#   eval "$(mcphost completion bash)"
_mcphost() {
    local line=${COMP_LINE:0:COMP_POINT} word cut
    local -a words=()
    IFS=$' \\t' read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    cut=""
    case $word in  # bash takes what follows these for a word of its own
        *[:=]*) cut=${word%"${word##*[:=]}"} ;;
    esac
    COMPREPLY=()
    while IFS=$'\\t' read -r word _; do
        COMPREPLY+=("${word#"$cut"}")
    done < <("${COMP_WORDS[0]}" __complete "${words[@]:1}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && type compopt &> /dev/null; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o default -F _mcphost mcphost
"""

_ZSH: Final = """\
#compdef mcphost
# Completion of mcphost in zsh. To load it, put this into ~/.zshrc, after compinit:
#   eval "$(mcphost completion zsh)"
_mcphost() {
    local line name
    local -a found open
    while IFS= read -r line; do
        name=${line%%$'\\t'*}
        if [[ $name == *= ]]; then
            open+=("$name")
        else
            found+=("${name//:/\\\\:}${${line#"$name"}/$'\\t'/:}")
        fi
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)
    (( $#open )) && compadd -S '' -a open
    if (( $#found )); then
        _describe mcphost found
    elif (( ! $#open )); then
        _files
    fi
}
if [[ $funcstack[1] == _mcphost ]]; then
    _mcphost "$@"
else
    compdef _mcphost mcphost
fi
"""

_FISH: Final = """\
# Completion of mcphost in fish. To load it:
#   mcphost completion fish > ~/.config/fish/completions/mcphost.fish
function __mcphost_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] __complete $words[2..] "$current" 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c mcphost -f -a '(__mcphost_complete)'
"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run_completion(options: Namespace) -> int:
    return finish(Outcome(SCRIPTS[options.shell]))
