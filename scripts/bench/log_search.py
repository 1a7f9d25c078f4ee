"""Measure `cc-convert search` over a gigabyte of logs: the first time, which reads them, and repeated.

    python scripts/bench/log_search.py [--mb 1000] [--rounds 5] [--kind thin|realistic]

The logs are those of `logs.py`. One search is for a text that occurs once, one for a text in every answer, and one for
a regular expression. Prints one JSON object, with medians and the size of the cache.

Exits with 1 if a repeated search for a text exceeds the limit of LOG-86.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import logs

MOST_SECONDS = 0.8
SEARCHES = {
    "a text that is rare": ["zebra crossing"],
    "a text in every answer": ["brown fox"],
    "a regular expression": ["-E", r"zebra\s+c\w+ing"],
}
RARE = {"type": "user", "sessionId": "rare", "message": {"role": "user", "content": "A zebra crossing"}}


def measure(kind: str, folder: Path, megabytes: float, rounds: int) -> dict[str, Any]:
    """Create the logs, and search them."""
    size = logs.Corpus(kind, folder).make(megabytes)
    (folder / "projects" / "rare.jsonl").write_text(json.dumps(RARE) + "\n", encoding="utf-8")
    cache = folder / "cache"
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(folder), "CC_CONVERT_CACHE": str(cache)}
    command = [sys.executable, "-m", "cc_convert", "search"]
    result: dict[str, Any] = {
        "megabytes": size / 1e6,
        "first": logs.measured([*command, *SEARCHES["a text that is rare"]], environment),
        "cache megabytes": sum(path.stat().st_size for path in cache.rglob("*.text")) / 1e6,
    }
    for name, words in SEARCHES.items():
        runs = [logs.measured([*command, *words], environment) for _ in range(rounds)]
        result[name] = {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}
    return result


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=1000.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kind", choices=logs.FILES, default="realistic")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.kind, Path(folder), options.mb, options.rounds)
    print(json.dumps(result, indent=1))
    return int(any(result[name]["seconds"] >= MOST_SECONDS for name in SEARCHES if "text" in name))


if __name__ == "__main__":
    sys.exit(main())
