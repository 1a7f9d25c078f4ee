"""Planted secrets that scripts/soak looks for."""

import subprocess
import sys
from pathlib import Path

from soak.secrets import Watch


def test_a_secret_is_found_in_what_others_can_read(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    for name, mode in (("private", 0o600), ("public", 0o640), ("planted-file-1", 0o600)):
        (tmp_path / name).write_text("a planted-key-1", "utf-8")
        (tmp_path / name).chmod(mode)
    code = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, "planted-prompt-2"]) as process:
        watch.look_once()
        process.kill()
    watch.look("the log", "planted-token-1, planted-token-2, planted-token-2")
    assert watch.found == {
        "planted-key in a file that others can read, public": 1,
        "planted-file in the name of a file": 1,
        "planted-prompt in a process title": 1,
        "planted-token in the log": 2,
    }
