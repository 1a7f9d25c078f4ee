"""The environment of the benchmarks' peer without a package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers import peer_environment


def test_without_an_index_there_is_a_reason_instead_of_an_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))

    with peer_environment() as (python, note):
        assert python is None
        assert note.startswith("The peer was not measured: ")


def test_without_uv_there_is_a_reason_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV", str(tmp_path / "uv"))

    with peer_environment() as (python, note):
        assert python is None
        assert "uv" in note
