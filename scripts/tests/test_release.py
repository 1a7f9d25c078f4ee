"""scripts/release.py and scripts/check_alone.py, as far as they are pure."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

import release
from check_alone import strangers, undeclared
from release import absolute_links, from_elsewhere
from workspace import ROOT, read_members, read_toml, workspace_pins


def test_every_package_is_named_like_its_folder_and_is_a_workspace_source() -> None:
    members = read_members()

    assert [path.name for path in members] == [table["project"]["name"] for table in members.values()]
    assert {path.name for path in members} == {*read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["sources"]}


def test_every_package_has_its_own_version_pages_tests_and_types() -> None:
    """ARCH-11"""
    for path, table in read_members().items():
        assert "version" not in table["project"].get("dynamic", []), path
        assert table["project"]["version"]
        wanted = ["README.md", "CHANGELOG.md", "tests", f"src/{path.name.replace('-', '_')}/py.typed"]
        assert [name for name in wanted if not (path / name).exists()] == [], path


def test_links_of_a_readme_become_absolute() -> None:
    """ARCH-41."""
    text = "[a](../../docs/x.md#y) [b](CHANGELOG.md) [c](https://a/b) [d](#e)"

    assert absolute_links(text, "packages/cc-a", "https://h") == (
        "[a](https://h/docs/x.md#y) [b](https://h/packages/cc-a/CHANGELOG.md) [c](https://a/b) [d](#e)"
    )


def test_a_provenance_names_the_archives_and_the_commit_if_nothing_else_went_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All."]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    statement = release.provenance({"a.whl": "00"})
    assert statement["subject"] == [{"name": "a.whl", "digest": {"sha256": "00"}}]
    [source] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert source["digest"] == {"gitCommit": head}
    (tmp_path / "pyproject.toml").write_text("[project.urls]\nSource = 'https://example.com'\n", encoding="utf-8")
    changed = release.provenance({})["predicate"]["buildDefinition"]
    assert changed["resolvedDependencies"] == []


def test_the_tested_cli_is_the_pinned_cli() -> None:
    """ARCH-42."""
    extras = read_toml(ROOT / "packages/cc-model/pyproject.toml")["project"]["optional-dependencies"]

    assert extras["tested"] == [pin for pin in workspace_pins() if pin.startswith("claude-agent-sdk==")]


def test_a_library_with_private_uses_has_one_range_with_a_bound() -> None:
    """ARCH-42."""
    ranges: dict[str, set[str]] = {}
    for table in read_members().values():
        for need in table["project"]["dependencies"]:
            name, _, _ = need.partition(">")
            ranges.setdefault(name, set()).add(need)

    for name in ("mcp", "anthropic", "pydantic-ai-slim[anthropic]"):
        (need,) = ranges[name]
        assert "<" in need


def test_package_from_an_index_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ARCH-39."""
    monkeypatch.setattr("release.DIST", tmp_path)
    for name in ("cc_types", "cc_ipc", "rich"):
        (folder := tmp_path / f"{name}-1.dist-info").mkdir()
        (folder / "METADATA").write_text(name, "utf-8")
    for name, metadata in (("cc_types", "another"), ("cc_ipc", "cc_ipc")):
        with zipfile.ZipFile(tmp_path / f"{name}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}-1.dist-info/METADATA", metadata)

    strangers = from_elsewhere(sorted(tmp_path.glob("*.dist-info")))
    assert strangers == [f"cc-types 1 is not that of {tmp_path.name}"]


def test_only_members_pinned_versions_and_a_needed_sdk_may_be_installed() -> None:
    """ARCH-09"""
    pins, sdk = ["dep==1", "fork==2 ; os_name == 'nt'", "claude-agent-sdk==3"], {"claude-agent-sdk": "3"}

    assert strangers("cc-types", {"cc-types": "0.1.0", "dep": "1", "fork": "2"}, pins, ["cc-types"]) == []
    assert strangers("cc-types", {"dep": "2", "stray": "2"}, pins, []) == ["dep 2 has no pin", "stray 2 has no pin"]
    assert strangers("cc-types", sdk, pins, []) == ["claude-agent-sdk was installed too"]
    assert strangers("cc-session", sdk, pins, []) == []


def test_an_undeclared_import_is_found_anywhere(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("import json\nfrom . import b\nimport pytest, extra.part", "utf-8")
    (tmp_path / "inner" / "b.py").write_text("def f():\n    from not_there.deep import x", "utf-8")

    assert undeclared(tmp_path, ["extra"]) == ["b.py imports not_there, which is not declared"]
