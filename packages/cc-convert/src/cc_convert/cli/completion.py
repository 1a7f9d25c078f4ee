"""`cc-convert completion`: generate shell completion scripts from the command's parser."""

from argparse import Namespace

from .parser import BY, make_parser


def run(options: Namespace) -> int:
    """Print the script."""
    words = {
        name: [word for word in command.words(choices=False) if not word.startswith("-") or word.startswith("--")]
        for name, command in make_parser().commands.items()
    }
    # A report's `by` is parsed from the sources, so that both may come in any order.
    words["report"] += BY
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    print(make(words))  # noqa: T201 - the command's output
    return 0


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
