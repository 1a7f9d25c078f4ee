"""Replace secrets and paths in texts that leave this machine. It knows common forms only: no list is complete."""

import re
from collections.abc import Iterable

__all__ = ["Redaction"]

_SECRET, _PATH = "[secret]", "[path]"

_SECRETS = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY(?:[ ]BLOCK)?-----.*?
        (?:-----END[ ][A-Z ]*PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|\Z)
    | \b(?: sk-ant-[\w-]{6,} | (?:sk|xai|pplx|tvly|nvapi)-[\w-]{16,}
      | (?:[srp]k_(?:live|test)|whsec|gsk|fw|r8|pcsk)_\w{16,}
      | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | (?:AKIA|ASIA)[0-9A-Z]{16}
      | xox[abeprs]-[\w-]{10,} | AIza[\w-]{30,} | ya29\.[\w-]{20,} | npm_\w{30,} | pypi-[\w-]{40,} | hf_\w{20,}
      | SG\.[\w-]{16,}\.[\w-]{16,} | (?:dop_v1|shp(?:at|ca|pa|ss)|lsv2_[a-z]{2})_\w{20,}
      | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
      # Cut off, as in a title.
      | (?: sk-ant- | gh[pousr]_ | github_pat_ | glpat- | xox[abeprs]- | AIza | npm_ | pypi- | hf_ | eyJ ) [\w.-]* \Z )
    # The rest of a secret that is broken over lines or strings.
    (?: (?=[ \t"'\\]*(?:[\n+]|\\n|\r)) (?: \\[nrt] | [\s"'\\+] ){1,40} [\w-]{12,} (?![\w-]) )*
    """,
    re.VERBOSE | re.DOTALL,
)
# Limits, since the time for a word without any grows with the square of its length.
_NAME = (
    r"[\w-]{0,80}?(?:password|passwd|passphrase|secret|token|(?:api|access|account|private)[_-]?key|credential)"
    r"[\w-]{0,80}"
)
_AFTER_NAME = re.compile(
    rf"""
    ( \b(?:bearer|basic)\s+ | (?<!\S)-u\s+(?=[^\s:]+:)
      | (?<![\w-])(?:--{_NAME}[ ]+ | {_NAME}\\?["']?\s*[:=]\s*) )
    (?! \\?["']? (?: \d+\b | \[secret\] ) )
    # In quotes, a secret may have any characters.
    (?: (?P<quote>\\?["']) [^"'\\\n]{{4,}} (?P=quote)
      | (?P<open>\\?["']?) (?!/) [^\s"'\\,;(){{}}<>@]{{4,}} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_USER_IN_ADDRESS = re.compile(r"://(?!git@)[^/\s\"'<>?#]+@")
# A folder in the middle of a web address or of a relative path is none of ours.
_SEPARATORS = re.compile(r"[/\\]+")
_BEFORE, _PART = r"(?:(?<![\w\]./~-])|(?<=\bfile://)|(?<=\s-[IL]))", r"[^\s\\/\"'`<>|:;,*?(){}\[\]]+"
_DRIVE = r"(?:(?<![\w\]./:~-])|(?<=\bfile:///))[A-Za-z]:"
_PATHS = re.compile(rf"{_BEFORE}(?:(?:/{_PART}){{2,}}|~[\w.-]*(?:/{_PART})+)|{_DRIVE}(?:[\\/]+{_PART})+")
_HOME = re.compile(r"(?:/home|(?:/mnt)?(?:/[a-z])?/Users|[a-z]:[\\/]+Users)[\\/]+[^\\/]+", re.IGNORECASE)
# Claude Code's folder for a project has the path with other characters as hyphens.
_HYPHENED_HOME = re.compile(r"(?<![\w-])(?:[A-Za-z]-)?-(?:home|Users)-[A-Za-z0-9-]+")


class Redaction:
    """Replaces secrets by `[secret]`, and the folders of absolute paths by `[path]`, so that file names remain.

    The folder with a user's name has no name that remains.

    Args:
        folders: Folders with any characters, blanks included, that are replaced, too; such as working folders. Their
            users' folders are known by them.
    """

    def __init__(self, folders: Iterable[str] = ()) -> None:
        paths = {folder.rstrip("/\\") for folder in folders} - {""}
        homes = {match[0] for folder in paths if (match := _HOME.match(folder))}
        # The longest first, since one may be within another.
        ordered = sorted(paths | homes, key=len, reverse=True)
        forms = [_any_separators(folder, rf"(?:[/\\]+{_PART})*" if folder in homes else "") for folder in ordered]
        forms += [f"{re.sub(r'[^A-Za-z0-9]', '-', folder)}(?![A-Za-z0-9])" for folder in ordered if len(folder) > 3]
        self._folders = re.compile("|".join(forms), re.IGNORECASE) if forms else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets and paths."""
        if self._folders:
            text = self._folders.sub(_without_folders, text)
        text = _SECRETS.sub(_SECRET, _USER_IN_ADDRESS.sub(f"://{_SECRET}@", text))
        text = _PATHS.sub(_without_folders, _AFTER_NAME.sub(_without_value, text))
        return _HYPHENED_HOME.sub(_PATH, text)


def _any_separators(folder: str, rest: str) -> str:
    """Return a pattern for a folder and the `rest` of a path, also as it is in JSON."""
    return r"[/\\]+".join(map(re.escape, _SEPARATORS.split(folder))) + rest + r"(?![\w-])"


def _without_value(match: re.Match[str]) -> str:
    quote = match["quote"] or ""
    return f"{match[1]}{quote or match['open'] or ''}{_SECRET}{quote}"


def _without_folders(match: re.Match[str]) -> str:
    *folders, name = _SEPARATORS.split(match[0])
    return f"{_PATH}/{name}" if folders and not _HOME.fullmatch(match[0]) else _PATH
