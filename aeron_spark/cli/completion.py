"""`aeron-spark completion`: prints what makes a shell complete verbs, options, choices and files.

The script is a table made from the argparse tree, so it knows what the installed version knows, and a function that walks the
command line through it. Completing starts no Python.

Keys of the table: a command ("aeron-spark archive list") holds its verbs, choices, `<file>` or `<dir>`; a command and " -" its
options; a command and an option what may stand behind that option, nothing known if it is empty.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from aeron_spark.cli.common import add_verb

_EXAMPLES = """\
  source <(aeron-spark completion bash)
  aeron-spark completion bash > ~/.local/share/bash-completion/completions/aeron-spark
  aeron-spark completion zsh > "${fpath[1]}/_aeron-spark"
  aeron-spark completion fish > ~/.config/fish/completions/aeron-spark.fish"""

_FILES = {"PATH": "<file>", "FILE": "<file>", "DIR": "<dir>"}

_BASH = """\
# bash completion of aeron-spark, written by `aeron-spark completion bash`.
declare -gA _aeron_spark_table=(
@TABLE@
)
_aeron_spark() {
    local word previous="${COMP_WORDS[COMP_CWORD-1]}" current="${COMP_WORDS[COMP_CWORD]}" command="aeron-spark" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="$command ${COMP_WORDS[i]}"
        [[ -n ${_aeron_spark_table["$word -"]+known} ]] && command="$word"
    done
    # --option=value comes as three words.
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $previous == "=" ]]; then
        previous="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    local words
    if [[ $previous == -* && -n ${_aeron_spark_table["$command $previous"]+known} ]]; then
        words="${_aeron_spark_table["$command $previous"]}"
    elif [[ $current == -* ]]; then
        words="${_aeron_spark_table["$command -"]}"
    else
        words="${_aeron_spark_table["$command"]}"
    fi
    case "$words" in
    "<file>") compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    "<dir>") compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    esac
}
complete -F _aeron_spark aeron-spark
"""

_ZSH = """\
#compdef aeron-spark
# zsh completion of aeron-spark, written by `aeron-spark completion zsh`.
typeset -gA _aeron_spark_table _aeron_spark_about
_aeron_spark_table=(
@TABLE@
)
_aeron_spark_about=(
@ABOUT@
)
_aeron-spark() {
    local word at="aeron-spark" before="${words[CURRENT-1]}" given="${words[CURRENT]}" found one i
    for ((i = 2; i < CURRENT; i++)); do
        word="$at ${words[i]}"
        (( ${+_aeron_spark_table[$word -]} )) && at="$word"
    done
    if [[ $given == -*=* ]]; then
        before="${given%%=*}"
        compset -P '*='
    fi
    if [[ $before == -* ]] && (( ${+_aeron_spark_table[$at $before]} )); then
        found="${_aeron_spark_table[$at $before]}"
    elif [[ $given == -* ]]; then
        found="${_aeron_spark_table[$at -]}"
    else
        found="${_aeron_spark_table[$at]}"
    fi
    case "$found" in
    "<file>") _files ;;
    "<dir>") _files -/ ;;
    *)
        local -a described
        for one in ${=found}; do described+=("$one:${_aeron_spark_about[$at $one]}"); done
        _describe -t words 'aeron-spark' described
        ;;
    esac
}
if [[ $funcstack[1] == _aeron-spark ]]; then _aeron-spark "$@"; else compdef _aeron-spark aeron-spark; fi
"""

_FISH = """\
# fish completion of aeron-spark, written by `aeron-spark completion fish`.
set -g __aeron_spark_commands @COMMANDS@
function __aeron_spark_at --argument-names wanted
    set -l at aeron-spark
    for word in (commandline -opc)[2..-1]
        set -l longer "$at $word"
        contains -- $longer $__aeron_spark_commands; and set at $longer
    end
    test "$at" = "$wanted"
end
complete -c aeron-spark -f
@LINES@
"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "completion", run, about="print a shell's completion script", examples=_EXAMPLES)
    verb.add_argument("shell", metavar="SHELL", choices=tuple(_SCRIPTS), help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    from aeron_spark.cli.__main__ import parser  # noqa: PLC0415 - the module that lists this verb

    print(_SCRIPTS[options.shell](parser()), end="")
    return 0


def commands(
    parser: argparse.ArgumentParser, path: str = "aeron-spark"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command by its words, "aeron-spark archive list"; aliases, too."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from commands(below, f"{path} {name}")


def _abouts(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Each verb and option of a command with its first words of help."""
    found: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {one.dest.split()[0]: one.help or "" for one in action._choices_actions}
        elif action.help is not argparse.SUPPRESS:
            found |= dict.fromkeys(action.option_strings, action.help or "")
    return {name: _short(text) for name, text in found.items()}


def _short(text: str) -> str:
    """A few words that need no quoting in any shell."""
    first = re.split(r"[;:(,]|\. ", text)[0]
    return re.sub(r"[^\w .+/=-]", "", first).strip()


def _after(action: argparse.Action) -> str:
    """What an option's value or an argument may be."""
    if action.choices is not None:
        return " ".join(map(str, action.choices))
    return _FILES.get(str(action.metavar), "")


def _table(parser: argparse.ArgumentParser) -> dict[str, str]:
    table: dict[str, str] = {}
    for path, command in commands(parser):
        table[f"{path} -"] = " ".join(name for name in _abouts(command) if name.startswith("-"))
        for action in command._actions:
            if action.help is argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction):
                continue
            if not action.option_strings:
                # Of several arguments the first that can be completed.
                table[path] = table.get(path) or _after(action)
            elif action.nargs != 0:
                table |= {f"{path} {flag}": _after(action) for flag in action.option_strings}
    return table


def _bash(parser: argparse.ArgumentParser) -> str:
    return _BASH.replace("@TABLE@", "\n".join(f'["{key}"]="{value}"' for key, value in _table(parser).items()))


def _zsh(parser: argparse.ArgumentParser) -> str:
    about = [
        f'"{path} {name}" "{text}"' for path, command in commands(parser) for name, text in _abouts(command).items()
    ]
    table = [f'"{key}" "{value}"' for key, value in _table(parser).items()]
    return _ZSH.replace("@TABLE@", "\n".join(table)).replace("@ABOUT@", "\n".join(about))


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = []
    table = _table(parser)
    values = {"<file>": "-rF", "<dir>": "-xa '(__fish_complete_directories)'", "": "-x"}
    for path, command in commands(parser):
        here = f"complete -c aeron-spark -n '__aeron_spark_at \"{path}\"'"
        if table.get(path) in {"<file>", "<dir>"}:
            lines.append(f"{here} {values[table[path]].replace('-rF', '-F').replace('-xa', '-a')}")
        abouts = _abouts(command)
        for name, text in abouts.items():
            if not name.startswith("-"):
                lines.append(f"{here} -a {name} -d '{text}'")
                continue
            flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            value = table.get(f"{path} {name}")
            after = "" if value is None else " " + values.get(value, f"-xa '{value}'")
            lines.append(f"{here} {flag} -d '{text}'{after}")
        choices = table.get(path, "")
        if choices and not choices.startswith("<") and not set(choices.split()) <= set(abouts) and "<" not in choices:
            lines.append(f"{here} -a '{choices}'")
    known = " ".join(f"'{path}'" for path, _ in commands(parser))
    return _FISH.replace("@COMMANDS@", known).replace("@LINES@", "\n".join(lines))


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
