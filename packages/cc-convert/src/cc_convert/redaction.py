"""Replace secrets and paths in texts that leave this machine. It knows common forms only: no list is complete."""

import re
from collections.abc import Iterable

_SECRET, _PATH = "[secret]", "[path]"

# Before a word; also after an escape in JSON or in an address, which may end with a letter.
_ESCAPED = r"(?:(?<=\\[nrt])|(?<=\\u[0-9a-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_START = rf"(?:\b|{_ESCAPED})"
_BLOCK = r"[A-Z0-9 +%]{0,40}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)?-----"
_SECRETS = re.compile(
    rf"""
    -----BEGIN{_BLOCK}.*?(?:-----END{_BLOCK}|\Z)
    # A key whose beginning was cut off.
    | (?:^[ \t]*[\w+/=]{{16,100}}\r?\n){{1,60}}(?:[ \t]*[\w+/=]{{1,100}}\r?\n)?[ \t]*-----END{_BLOCK}
    | Private-Lines:.*?(?:Private-MAC:[ ]\w+|\Z)
    | \$(?:apr1|2[aby]|[156y])\$[\w./$]{{8,}}
    | hooks\.slack\.com/services/[\w/]+ | discord(?:app)?\.com/api/webhooks/[\w/-]+
    | {_START}(?: sk-ant-[\w-]{{6,}} | (?:sk|xai|pplx|tvly|nvapi|sq0[a-z]{{3}}|key|GOCSPX|NRAK|PMAK)-[\w-]{{16,}}
      | gl[a-z]{{2,6}}-[\w-]{{16,}} | xox[abeprs]-[\w-]{{10,}} | pypi-[\w-]{{40,}} | AGE-SECRET-KEY-\w{{16,}}
      | (?:[srp]k_(?:live|test)|whsec|gsk|fw|r8|pcsk|gh[pousr]|github_pat|npm|hf|do[opr]_v1|shp(?:at|ca|pa|ss)|lin_api
        |lsv2_[a-z]{{2}}|ntn|secret|figd|sntry[su]|sbp|pscale_tkn|glsa|fm2)_[\w=-]{{16,}}
      | (?:AKIA|ASIA)[0-9A-Z]{{16}} | (?:AIza|ATATT|ATBB)[\w-]{{20,}} | (?:SK|dapi)[0-9a-f]{{32}}
      | \d{{8,10}}:AA[\w-]{{30,}} | (?:ya29|hvs|dp\.[a-z]{{2,4}})\.[\w-]{{16,}} | 1//0[\w-]{{20,}}
      | SG\.[\w-]{{16,}}\.[\w-]{{16,}} | eyJ[\w-]{{8,}}(?:\.[\w-]*){{2,4}}
      # Cut off, as in a title.
      | (?: sk-ant- | gh[pousr]_ | github_pat_ | glpat- | xox[abeprs]- | AIza | npm_ | pypi- | hf_ | eyJ ) [\w.-]* \Z )
    # The rest of a secret that is broken over lines or strings.
    (?: (?=[ \t"'\\]*(?:[\n+]|\\n|\r)) (?: \\[nrt] | [\s"'\\+] ){{1,40}} [\w-]{{12,}} (?![\w-]) )*
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
# Limits, since the time for a word without any grows with the square of its length.
_NAME = (
    r"[\w-]{0,80}?(?:passw(?:or)?d|passphrase|secret|token|(?:api|access|account|private|auth)[_-]?key|credential"
    r"|signature|cookie|(?<![A-Za-z])(?:pass|pwd|auth|sig|pat)(?![A-Za-z])|(?-i:(?<=[A-Z]_)KEY(?![A-Za-z])))[\w-]{0,80}"
)
_QUOTE = r"\\*[\"']"
_AFTER_NAME = re.compile(
    rf"""
    ( {_START}(?: (?:authorization:\s*)?(?:bearer|basic|digest|ssws)\s+ | authorization:\s*(?:token\s+)?
        | (?:set-)?cookie:\s* | setx?\s+(?:-\w+\s+)*{_NAME}\s+ | sshpass\s+-p\s* | login\s+\S{{1,80}}\s+password\s+
        | mysql\s(?:[^\n|;]{{0,200}}\s)?-p(?=\S) )
      | (?<!\S)(?:-u|--user)\s+(?=[^\s:]{{1,80}}:) | (?<=[?&])(?:key|code)=
      | (?<![\w-])--{_NAME}[ ]+ | (?:(?<![\w-])|{_ESCAPED}){_NAME}(?:{_QUOTE})?\s*
        (?: [:=]=?>?\s*(?:\|\s+)? | %3D | \\u003d | > | "\s+value= | :\s*\w+\s*=\s* ) )
    (?! (?:{_QUOTE})? \[secret\] )
    # In quotes, a secret may have any characters.
    (?: (?P<quote>{_QUOTE}) [^"'\\\n]{{4,}} (?P=quote)
      | (?P<open>(?:{_QUOTE})?) (?!/) [^\s"'\\,;&(){{}}<>@]{{4,}} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_USER_IN_ADDRESS = re.compile(
    r"(?<=://)(?!git@)[^/\s\"'<>?#]+(?=@)|(?<=%3A%2F%2F)[^/\s\"'<>?#]+?(?=%40)", re.IGNORECASE
)
# A folder in the middle of a web address or of a relative path is none of ours.
_SEPARATOR = r"(?:[/\\]|%2F|%5C)"
_SEPARATORS = re.compile(f"{_SEPARATOR}+", re.IGNORECASE)
_BEFORE = r"(?:(?<![\w\]./~-])|(?<=\bfile://)|(?<=://file)|(?<=\s-[IL])|(?<=\\[nrt]))"
_PART = r"(?:[^\s\\/\"'`<>|:;,*?(){}\[\]]|\\\ )+"
_DRIVE = r"(?:(?<![\w\]./:~-])|(?<=\bfile:///)|(?<=\\[nrt]))[A-Za-z]:"
_ENCODED = r"(?:[A-Za-z]%3A)?(?:%(?:2F|5C)(?:[\w.+~-]|%(?!2F|5C|3A)[0-9A-F]{2})+){2,}"
_PATHS = re.compile(
    rf"{_BEFORE}(?:(?:/{_PART}){{2,}}|~[\w.-]*(?:/{_PART})+)|{_DRIVE}(?:[\\/]+{_PART})+|{_ENCODED}"
    rf"|(?<![\w\\:])(?:\\\\){{1,2}}\w[\w.$-]*(?:\\+{_PART}){{2,}}",
)
_HOME = re.compile(
    rf"(?:/home|(?:/mnt|/cygdrive)?(?:/[a-z])?/Users|[a-z]:[\\/]+Users|%2F(?:home|Users)|[a-z]%3A%5CUsers)"
    rf"{_SEPARATOR}+[^\\/%]+",
    re.IGNORECASE,
)
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
        text = _SECRETS.sub(_SECRET, _USER_IN_ADDRESS.sub(_SECRET, text))
        text = _PATHS.sub(_without_folders, _AFTER_NAME.sub(_without_value, text))
        return _HYPHENED_HOME.sub(_PATH, text)


def _any_separators(folder: str, rest: str) -> str:
    """Return a pattern for a folder and the `rest` of a path, also as it is in JSON."""
    parts = [re.escape(part).replace(r"\ ", r"(?:\\?\ |%20)") for part in _SEPARATORS.split(folder)]
    return f"{_SEPARATOR}+".join(parts) + rest + r"(?![\w-])"


def _without_value(match: re.Match[str]) -> str:
    if "token" in match[1].lower() and match[0][len(match[1]) :].strip("\"'\\").isdigit():
        return match[0]  # a count
    quote = match["quote"] or ""
    return f"{match[1]}{quote or match['open'] or ''}{_SECRET}{quote}"


def _without_folders(match: re.Match[str]) -> str:
    *folders, name = _SEPARATORS.split(match[0])
    return f"{_PATH}/{name}" if folders and not _HOME.fullmatch(match[0]) else _PATH
