"""``casnap completion``, and the answers to the shells that its scripts run in."""

from __future__ import annotations

import os
from typing import ClassVar

import click
from click.shell_completion import CompletionItem, FishComplete, ShellComplete, ZshComplete, split_arg_string

from casnap.cli.completing import Item, candidates
from casnap.cli.options import verb
from casnap.cli.output import Output
from casnap.cli.running import COMPLETE
from casnap.cli.session import Session
from casnap.errors import interruption_in

_BASH = """\
%(complete_func)s() {
    local kind value from_files=
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value; do
        case $kind in
            dir) from_files=1; compopt -o filenames -o plusdirs ;;
            file) from_files=1; compopt -o filenames -o default ;;
            plain)
                [[ $from_files ]] || printf -v value %%q "$value"
                COMPREPLY+=("$value")
                ;;
        esac
    done < <(
        COMP_WORDS=${COMP_LINE:0:COMP_POINT} COMP_CWORD=$COMP_WORDBREAKS %(complete_var)s=bash_complete "$1" 2>/dev/null
    )
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local kind value purpose
    local -a described
    for kind value purpose in "${(@f)$(
        COMP_WORDS="${(j: :)words}" COMP_CWORD=$((CURRENT - 1)) %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null
    )}"; do
        case $kind in
            dir) _path_files -/ && [[ -n $words[CURRENT] ]] && return ;;
            file) _path_files ;;
            plain)
                if [[ $purpose == _ ]]; then
                    compadd -V %(prog_name)s -- "$value"
                else
                    described+=("$value:$purpose")
                fi
                ;;
        esac
    done
    (( $#described )) && _describe -V %(prog_name)s described
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    set -lx %(complete_var)s fish_complete
    set -lx COMP_WORDS (commandline -cp)
    set -lx COMP_CWORD (commandline -ct)
    for line in (%(prog_name)s)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $COMP_CWORD
            case file
                __fish_complete_path $COMP_CWORD
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Answering(ShellComplete):
    """A shell whose questions :mod:`casnap.cli.completing` answers."""

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        return candidates(self.cli, args, incomplete)


class Bash(_Answering):
    """Bash, which breaks words at colons and equal signs too, and replaces what stands behind the last of them."""

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = _BASH
    _kept = 0

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, read from the line itself: bash's own words are the broken ones."""
        line, breaks = os.environ["COMP_WORDS"], os.environ["COMP_CWORD"]
        words = split_arg_string(line)[1:]
        in_word = len(split_arg_string(f"{line}x")) == len(words) + 1
        typed = words.pop() if in_word and words else ""
        self._kept = 1 + max((typed.rfind(mark) for mark in ":=" if mark in breaks), default=-1)
        return words, typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        """A line of its type and what bash is to put in place of its own word."""
        return f"{item.type}\t{item.value[self._kept :]}"


class Zsh(_Answering, ZshComplete):
    """Zsh, with a script that leaves it to zsh which candidates match what was typed."""

    source_template: ClassVar[str] = _ZSH


class Fish(_Answering, FishComplete):
    """Fish, with a script that lets descriptions hold commas."""

    source_template: ClassVar[str] = _FISH


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


@verb("completion")
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(list(SHELLS)))
def command(session: Session, shell: str) -> int:
    """Print the script that completes verbs, options, names and workspaces in a shell.

    For one shell: eval "$(casnap completion bash)"; in fish: casnap completion fish | source.
    """
    script = _in_shell(click.get_current_context().find_root().command, shell).source()
    if session.as_json:
        session.document("completion", None, shell=shell, script=script)
    else:
        session.output.bytes(script.encode())
    return 0


def answer(program: click.Command, asked: str) -> int:
    """Answer a shell in the middle of somebody's line: never an error, and never a word on standard error."""
    output = Output(quiet=True)
    try:
        text = _in_shell(program, asked.partition("_")[0]).complete()
    except (KeyboardInterrupt, LookupError, ValueError):  # the last two: asked by no script of ours
        text = ""
    except RuntimeError as error:
        if interruption_in(error) is None:
            raise
        text = ""
    if text:
        output.bytes(text.encode("utf-8", "surrogateescape") + b"\n")
    output.finish()
    return 0


def _in_shell(program: click.Command, shell: str) -> ShellComplete:
    return SHELLS[shell](program, {}, "casnap", COMPLETE)
