"""Secrets and paths in texts that leave this machine."""

import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.redaction import Redaction

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]

# Seconds; a time that grows with the square takes hours.
PATIENCE = 20.0
SECRETS = [
    "sk-" + "ant-api03-" + "Ab1_" * 8,
    "ghp" + "_" + "a1B2" * 9,
    "AKIA" + "ABCDEFGH12345678",
    "xoxb" + "-123456789012-abcdef",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "gsk" + "_" + "a1B2" * 12,
    "xai" + "-" + "a1B2" * 12,
    "sk" + "_live_" + "a1B2" * 6,
    "SG" + "." + "a1B2" * 5 + "." + "a1B2" * 10,
    "sk-" + "ant-api03-" + "Ab1_" * 8 + "\n  " + "Cd2-" * 8,
    "sk-" + "ant-api03-" + "Ab1_" * 2 + '" + "' + "Cd2-" * 8,
    *("gld" + "t-" + "a1B2" * 5, "GOC" + "SPX-" + "a1B2" * 7, "dap" + "i" + "0a1b" * 8, "lin" + "_api_" + "a1B2" * 10),
    *("AGE" + "-SECRET-KEY-1" + "Q1W2" * 12, "hvs" + "." + "a1B2" * 8),
    "-----BEGIN%20RSA%20" + "PRIVATE%20KEY-----%0AMIIEow%0A-----END%20RSA%20" + "PRIVATE%20KEY-----",
    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nMIIEow\n-----END PGP " + "PRIVATE KEY BLOCK-----",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA " + "PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_common_secrets_are_replaced(secret: str) -> None:
    """LOG-99"""
    assert Redaction()(f"before {secret} behind") == "before [secret] behind"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"password": "hunter22", "input_tokens": 1000}', '{"password": "[secret]", "input_tokens": 1000}'),
        ("export API_KEY=abc123xyz; ls", "export API_KEY=[secret]; ls"),
        ("Authorization: Bearer abcdef.ghi", "Authorization: Bearer [secret]"),
        ("postgres://anna:geheim1@db/x", "postgres://[secret]@db/x"),
        ("postgres://anna:ge@heim@db/x", "postgres://[secret]@db/x"),
        ("http://localhost:8080/x, ssh://git@host/x", "http://localhost:8080/x, ssh://git@host/x"),
        ('PASSWORD="a;b, c(d)"', 'PASSWORD="[secret]"'),
        ("x-api-key: abc/def+gh==/ij/kl", "x-api-key: [secret]"),
        ("AccountKey=abc/def+gh==;x", "AccountKey=[secret];x"),
        ("login --token abc123def -u otto:geheim1", "login --token [secret] -u [secret]"),
        ("see /home/anna/shop/src/x.py:3 and ~/notes", "see [path]/x.py:3 and [path]/notes"),
        ("https://example.com/a/b?c and src/x.py", "https://example.com/a/b?c and src/x.py"),
        (r"C:\Users\anna\x.py", "[path]/x.py"),
        ("/home/anna/my work/shop/x.py", "[path]/my work/shop/x.py"),
        ("projects/-home-anna-my-work/s.jsonl", "projects/[path]/s.jsonl"),
        ("cd /home/anna; cd /Users/otto/", "cd [path]; cd [path]/"),
        ("/home/annabelle/x.py -home-annabelle-x", "[path]/x.py [path]"),
        ("PATH=/bin/x:/home/otto/bin", "PATH=[path]/x:[path]/bin"),
        ("file:///home/otto/x.py cc -I/home/otto/include", "file://[path]/x.py cc -I[path]/include"),
        ("~otto/x.py -Users-otto-shop", "[path]/x.py [path]"),
        (r"c:\users\Jörg Müller\blog\x.py", "[path]/x.py"),
        (r"C:\\Users\\Jörg Müller\\my shop\\x.py", r"[path]/my shop\\x.py"),
        (r'"x\n' + "sk-" + r'ant-abc123\u0022"', r'"x\n[secret]\u0022"'),
        ("x%3Dsk-" + "ant-abc123 token%3Dabc123", "x%3D[secret] token%3D[secret]"),
        ("https://hooks." + "slack.com/services/T0/B0/a1B2", "https://[secret]"),
        ("x\nMIIEowIBAAKCAQEA1234\nabcd\n-----END RSA " + "PRIVATE KEY-----", "x\n[secret]"),
        ("machine x login anna password geheim1", "machine x login anna password [secret]"),
        ("//npm.example/:_authToken=01234567-89ab", "//npm.example/:_authToken=[secret]"),
        ("Cookie: sid=abcdef12", "Cookie: [secret]"),
        ("https://x.example/?key=abc123&sig=def456", "https://x.example/?key=[secret]&sig=[secret]"),
        ("'password' => 'geheim1', <password>geheim1<", "'password' => '[secret]', <password>[secret]<"),
        (
            "DB_PASS=geheim1; STRIPE_KEY=abc123; password=8675309",
            "DB_PASS=[secret]; STRIPE_KEY=[secret]; password=[secret]",
        ),
        ("curl --user anna:geheim1 x; mysql -u root -pgeheim1", "curl --user [secret] x; mysql -u root -p[secret]"),
        ("setx API_KEY abc123; key: str, keyboard=querty", "setx API_KEY [secret]; key: str, keyboard=querty"),
        ("postgres%3A%2F%2Fanna%3Ageheim1%40db", "postgres%3A%2F%2F[secret]%40db"),
        ("%2Fhome%2Fotto%2Fshop%2Fx.py C%3A%5CUsers%5Cotto%5Cx.py", "[path]/x.py [path]/x.py"),
        (r"/home/otto/my\ work/x.py \\server\share\otto\x.py", "[path]/x.py [path]/x.py"),
        (
            "vscode://file/home/otto/x.py file:///home/anna/my%20work/x.py",
            "vscode://file[path]/x.py file:[path]/my%20work/x.py",
        ),
        ("1/2 and a / b, and/or", "1/2 and a / b, and/or"),
    ],
)
def test_secrets_after_names_and_folders_are_replaced(text: str, redacted: str) -> None:
    """LOG-99"""
    assert Redaction(["/home/anna/my work", r"C:\Users\Jörg Müller\my shop"])(text) == redacted


@pytest.mark.parametrize("piece", ["/a", 'token="', "-----BEGIN A "])
def test_the_time_grows_with_the_length_alone(piece: str) -> None:
    """LOG-99: a tool's result may be a file in base64."""
    start = time.perf_counter()
    Redaction(["/home/anna"])(piece * (400_000 // len(piece)))
    assert time.perf_counter() - start < PATIENCE


def test_a_secret_that_was_cut_off_is_replaced() -> None:
    """LOG-99: as in a title or in the folded line of a call."""
    assert Redaction()(f"Use {SECRETS[0][:12]}") == "Use [secret]"


@pytest.mark.parametrize("form", ["md", "html", "jsonl", "csv"])
def test_an_export_has_no_secrets_and_no_folders(run: Run, maker: Maker, tmp_path: Path, form: str) -> None:
    """LOG-99: and says that a look at it is needed."""
    log = maker(project="/home/anna/my work/shop")
    log.user(f"Use {SECRETS[0]} in /home/anna/my work/shop/x.py")
    call = {"command": f"curl -H 'x-api-key: {SECRETS[1]}' ; cat /home/anna/.netrc"}
    log.answer(content=[{"type": "tool_use", "id": "t1", "name": "Bash", "input": call}])
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": f"token={SECRETS[2]}"}])
    log.answer(content=[{"type": "text", "text": f"It is **{SECRETS[1]}**."}], gitBranch=f"try-{SECRETS[1]}")

    source = log.write(tmp_path / "anna.jsonl")
    done = run("convert", "--from", f"annas-laptop:{source}", "--format", form, "--redact")

    assert done.code == 0
    assert "read the result before you give it away" in done.err
    assert not re.findall(r"anna|sk-ant|ghp_|AKIA", done.out)
    assert "shop" in done.out


def test_parquet_is_redacted_too(run: Run, log: Any, tmp_path: Path) -> None:
    """LOG-99"""
    if find_spec("duckdb") is None:
        pytest.skip("needs DuckDB")
    log.answer()
    assert run("convert", log.write(), "-o", tmp_path / "rows.parquet", "--redact").code == 0
    assert b"/home/user" not in (tmp_path / "rows.parquet").read_bytes()
