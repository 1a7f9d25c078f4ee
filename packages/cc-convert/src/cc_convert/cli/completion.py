"""`cc-convert completion`: generate shell completion scripts from the command's parser."""

import argparse
from argparse import Namespace
from typing import cast

from .parser import BY, make_parser


def run(options: Namespace) -> int:
    """Print the script."""
    commands = _commands()
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    print(make(commands))  # noqa: T201 - the command's output
    return 0


def _commands() -> dict[str, list[str]]:
    """Return each command's options and fixed words."""
    words_by_command: dict[str, list[str]] = {}
    for action in make_parser()._actions:  # pyright: ignore[reportPrivateUsage] - argparse has no other way
        choices: object = action.choices
        if isinstance(choices, dict):
            commands = cast("dict[str, argparse.ArgumentParser]", choices)
            words_by_command |= {name: _words(command) for name, command in commands.items()}
    # A report's `by` is parsed from the sources, so that both may come in any order.
    words_by_command["report"] += BY
    return words_by_command


def _words(command: argparse.ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in command._actions:  # pyright: ignore[reportPrivateUsage]
        words += [option for option in action.option_strings if option.startswith("--")]
        if not action.option_strings and action.choices:
            words += map(str, action.choices)
    return words


def _bash(commands: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(words)}" ;;' for name, words in commands.items())
    return f"""\
_cc_convert() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="{" ".join(commands)} --help --version"
  if (( COMP_CWORD > 1 )); then
    case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}}
complete -o filenames -F _cc_convert cc-convert"""


def _zsh(commands: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {name}) compadd -- {' '.join(words)} ;;" for name, words in commands.items())
    return f"""\
#compdef cc-convert
_cc_convert() {{
  if (( CURRENT == 2 )); then
    compadd -- {" ".join(commands)} --help --version
    return
  fi
  case "$words[2]" in
{cases}
  esac
  _files
}}
compdef _cc_convert cc-convert"""


def _fish(commands: dict[str, list[str]]) -> str:
    names = " ".join(commands)
    lines = [f'complete -c cc-convert -n "not __fish_seen_subcommand_from {names}" -f -a "{names}"']
    for name, words in commands.items():
        options = [word[2:] for word in words if word.startswith("--")]
        fixed = [word for word in words if not word.startswith("--")]
        lines += [f'complete -c cc-convert -n "__fish_seen_subcommand_from {name}" -l {option}' for option in options]
        if fixed:
            lines.append(f'complete -c cc-convert -n "__fish_seen_subcommand_from {name}" -a "{" ".join(fixed)}"')
    return "\n".join(lines)
