"""Replace secrets and paths in texts that leave this machine. It knows common forms only: no list is complete."""

import re
from collections.abc import Iterable

__all__ = ["Redaction"]

_SECRET, _PATH = "[secret]", "[path]"

_SECRETS = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | \b(?: sk-[\w-]{16,} | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | (?:AKIA|ASIA)[0-9A-Z]{16}
      | xox[abeprs]-[\w-]{10,} | AIza[\w-]{30,} | npm_\w{30,} | pypi-[\w-]{40,} | hf_\w{20,}
      | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
      # Cut off, as in a title.
      | (?: sk-ant- | gh[pousr]_ | github_pat_ | glpat- | xox[abeprs]- | AIza | npm_ | pypi- | hf_ | eyJ ) [\w.-]* \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_AFTER_NAME = re.compile(
    r"""
    ( \b(?:bearer|basic)\s+ | ://(?=[^/\s@]*:)
      | [\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)[\w-]*
        \\?["']?\s*[:=]\s*\\?["']? )
    (?! \d+\b | \[secret\] )
    ( [^\s"'\\,;(){}<>/@]{4,} (?: / [^\s"'\\,;(){}<>@]* )? )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A folder in the middle of a web address or of a relative path is none of ours.
_SEPARATORS = re.compile(r"[/\\]+")
_BEFORE, _PART = r"(?<![\w\]./:~-])", r"[^\s\\/\"'`<>|:;,*?(){}\[\]]+"
_PATHS = re.compile(rf"{_BEFORE}(?:~?(?:/{_PART}){{2,}}|~/{_PART}|[A-Za-z]:(?:[\\/]+{_PART})+)")


class Redaction:
    """Replaces secrets by `[secret]`, and the folders of absolute paths by `[path]`, so that file names remain.

    Args:
        folders: Folders with any characters, blanks included, that are replaced, too; such as working folders.
    """

    def __init__(self, folders: Iterable[str] = ()) -> None:
        # The longest first, since one may be within another.
        paths = sorted({folder.rstrip("/\\") for folder in folders} - {""}, key=len, reverse=True)
        # Claude Code's folder for a project has the path with other characters as hyphens.
        hyphened = [re.sub(r"[^A-Za-z0-9]", "-", folder) for folder in paths if len(folder) > 3]
        names = {folder: _without_folders(folder) for folder in paths}
        self._names = names | {name: _PATH for name in hyphened if name not in names}
        self._folders = re.compile("|".join(map(re.escape, self._names))) if self._names else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets and paths."""
        if self._folders:
            text = self._folders.sub(lambda match: self._names[match[0]], text)
        text = _AFTER_NAME.sub(lambda match: match[1] + _SECRET, _SECRETS.sub(_SECRET, text))
        return _PATHS.sub(lambda match: _without_folders(match[0]), text)


def _without_folders(path: str) -> str:
    return f"{_PATH}/{_SEPARATORS.split(path)[-1]}"
