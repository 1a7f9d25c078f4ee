"""`cc-convert completion`: generate shell completion scripts from the command parser."""

from argparse import Namespace
from typing import TypeAlias

from .parser import BY, CommandParser, make_parser

_Words: TypeAlias = dict[str, dict[str, list[str]]]
"""For each command the values of each option that has fixed ones; under an empty name, its options and fixed words."""


def run(options: Namespace) -> int:
    """Print the script."""
    commands: _Words = {name: _words(command) for name, command in make_parser().commands.items()}
    # A report's `by` is parsed from the sources, so that both may come in any order.
    commands["report"][""] += BY
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    print(make(commands))  # noqa: T201 - the command output
    return 0


def _words(command: CommandParser) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {"": []}
    for forms, values in command.choices():
        words[""] += [form for form in forms if form.startswith("--")] if forms else values
        words |= {form: values for form in forms if values}
    return words


def _cases(commands: _Words, action: str) -> str:
    """Return the branches of a `case` over a command and the word before the current word."""
    branches = [
        (f'"{name} {option}"' if option else f'"{name} "*', words)
        for name, options in commands.items()
        for option, words in sorted(options.items(), reverse=True)  # first the options
    ]
    return "\n".join(f"    {pattern}) {action.format(' '.join(words))} ;;" for pattern, words in branches)


def _bash(commands: _Words) -> str:
    return f"""\
_cc_convert() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="{" ".join(commands)} --help --version"
  if (( COMP_CWORD > 1 )); then
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{_cases(commands, 'words="{}"')}
    *) words="" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}}
complete -o filenames -F _cc_convert cc-convert"""


def _zsh(commands: _Words) -> str:
    return f"""\
#compdef cc-convert
_cc_convert() {{
  if (( CURRENT == 2 )); then
    compadd -- {" ".join(commands)} --help --version
    return
  fi
  case "$words[2] $words[CURRENT - 1]" in
{_cases(commands, "compadd -- {}")}
  esac
  _files
}}
compdef _cc_convert cc-convert"""


def _fish(commands: _Words) -> str:
    names = " ".join(commands)
    lines = [f'complete -c cc-convert -n "not __fish_seen_subcommand_from {names}" -f -a "{names}"']
    for name, options in commands.items():
        start = f'complete -c cc-convert -n "__fish_seen_subcommand_from {name}"'
        for word in options[""]:
            values = f' -x -a "{" ".join(options[word])}"' if word in options else ""
            lines.append(f"{start} -l {word[2:]}{values}" if word.startswith("--") else f'{start} -a "{word}"')
    return "\n".join(lines)
