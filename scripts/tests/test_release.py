"""scripts/release.py and scripts/check_alone.py, as far as they are pure, and scripts/commands.py."""

import asyncio
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath

import psutil
import pytest

import release
from check_alone import check_import, import_packages, strangers, undeclared
from commands import CheckError, run
from pin import select_pins
from processes import eventually
from release import absolute_links, from_elsewhere, main, prepare, problems_of
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


WHEEL = {
    "cc_a/__init__.py": "",
    "cc_a/py.typed": "",
    "cc_a-0.1.0.dist-info/licenses/LICENSE": "MIT",
    "cc_a-0.1.0.dist-info/METADATA": """\
Metadata-Version: 2.4
Name: cc-a
Version: 0.1.0
Summary: A package
License-Expression: MIT
Requires-Python: >=3.11
Author: The authors
Project-URL: Source, https://example.org

# cc-a
""",
}
SDIST = dict.fromkeys(["CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src/cc_a/py.typed"], "")


def wheel_of(folder: Path, files: Mapping[str, str]) -> Path:
    path = folder / "cc_a-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def sdist_of(folder: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        file = folder / "cc_a-0.1.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    path = folder / "cc_a-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "cc_a-0.1.0", "cc_a-0.1.0")
    return path


def test_complete_wheel_and_sdist_pass(tmp_path: Path) -> None:
    """ARCH-11, ARCH-38."""
    assert problems_of(wheel_of(tmp_path, WHEEL)) == []
    assert problems_of(sdist_of(tmp_path, SDIST)) == []


@pytest.mark.parametrize(
    ("removed", "lacks"),
    [
        ("cc_a/py.typed", "cc_a/py.typed"),
        ("cc_a-0.1.0.dist-info/licenses/LICENSE", "cc_a-0.1.0.dist-info/licenses/LICENSE"),
        ("License-Expression: MIT\n", "License-Expression"),
        ("# cc-a\n", "README in its metadata"),
    ],
)
def test_an_incomplete_wheel_is_named(tmp_path: Path, removed: str, lacks: str) -> None:
    files = {name: content.replace(removed, "") for name, content in WHEEL.items() if name != removed}
    wheel = wheel_of(tmp_path, files)

    assert problems_of(wheel) == [f"{wheel.name} has no {lacks}"]


def test_an_incomplete_sdist_is_named(tmp_path: Path) -> None:
    sdist = sdist_of(tmp_path, {name: content for name, content in SDIST.items() if name != "README.md"})

    assert problems_of(sdist) == [f"{sdist.name} has no README.md"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("tests/test_a.py", "", "contains a test: tests/test_a.py"),
        ("src/cc_a/__pycache__/a.pyc", "", "contains a cache: src/cc_a/__pycache__/a.pyc"),
        ("src/cc_a/a.py", f"path = '{ROOT}/x'", "contains a path of this machine: src/cc_a/a.py"),
    ],
)
def test_stray_file_is_named(tmp_path: Path, name: str, content: str, problem: str) -> None:
    """ARCH-38."""
    sdist = sdist_of(tmp_path, SDIST | {name: content})

    assert problems_of(sdist) == [f"{sdist.name} {problem}"]


@pytest.mark.parametrize("part", ["[a](../b.md)", "[a](b.md#c)", "```mermaid"])
def test_readme_that_an_index_cannot_show_is_named(tmp_path: Path, part: str) -> None:
    """ARCH-41."""
    metadata = "cc_a-0.1.0.dist-info/METADATA"

    (problem,) = problems_of(wheel_of(tmp_path, WHEEL | {metadata: WHEEL[metadata] + part}))

    assert problem.startswith("cc_a-0.1.0-py3-none-any.whl contains, for an index: ")


def test_links_of_a_readme_become_absolute() -> None:
    """ARCH-41."""
    text = "[a](../../docs/x.md#y) [b](CHANGELOG.md) [c](https://a/b) [d](#e)"

    assert absolute_links(text, "packages/cc-a", "https://h") == (
        "[a](https://h/docs/x.md#y) [b](https://h/packages/cc-a/CHANGELOG.md) [c](https://a/b) [d](#e)"
    )


def test_a_release_has_the_addresses_and_authors_of_the_workspace(tmp_path: Path) -> None:
    """ARCH-41."""
    prepare(tmp_path)

    root = read_toml(ROOT / "pyproject.toml")["project"]
    for path in tmp_path.glob("packages/*/pyproject.toml"):
        project = read_toml(path)["project"]
        assert project["authors"] == root["authors"]
        assert project["urls"].items() > root["urls"].items()


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


def test_pins_of_a_requirements_file_keep_their_markers_and_lose_their_hashes() -> None:
    hashes = " \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\n"
    text = f"a==1{hashes}b==2 ; os_name == 'nt'{hashes}./c\nd==3\n"

    assert select_pins(text) == ["a==1", "b==2 ; os_name == 'nt'", "d==3"]


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


def test_check_without_a_release_names_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("release.REQUIREMENTS", tmp_path / "requirements.txt")
    monkeypatch.setattr("sys.argv", ["release.py", "check"])

    assert main() == 1
    assert "python3 scripts/release.py build" in capsys.readouterr().out


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


def test_each_import_package_of_a_distribution_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ARCH-09: a plugin as far as its program is there."""
    files = [
        "cc_a/__init__.py",
        "cc_a/inner/__init__.py",
        "cc_plugin/__init__.py",
        "cc_a-0.1.dist-info/RECORD",
        "a.pth",
    ]
    assert import_packages(map(PurePath, files)) == ["cc_a", "cc_plugin"]

    plugin = "import json\nfrom host_program.plugins import Plugin"
    for name, content in (("cc_a", "import not_there.deep"), ("cc_plugin", plugin), ("cc_well", "import json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(content, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType]
    assert check_import("cc_well", ()) == check_import("cc_plugin", {"host_program"}) == []
    assert check_import("cc_a", ()) == [
        "cc_a cannot be imported: No module named 'not_there'", "__init__.py imports not_there, which is not declared",
    ]  # fmt: skip
    assert "cc_model is imported from the repository" in check_import("cc_model", ())


async def test_failed_command_shows_its_output(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=r"(?s)exit code 3.*told you"):
        await run(["sh", "-c", "echo told you >&2; exit 3"], tmp_path)


@pytest.mark.deaths
async def test_a_cancelled_command_leaves_no_process(tmp_path: Path) -> None:
    for turns in (*range(12), None):
        started = tmp_path / f"started-{turns}"
        command = f"sleep 61 >/dev/null 2>&1 & echo $! >{started}.part; mv {started}.part {started}; wait"
        work = asyncio.create_task(run(["sh", "-c", command], tmp_path))
        if turns is None:
            await eventually(started.exists)
        else:
            for _ in range(turns):
                await asyncio.sleep(0)
            time.sleep(0.1)  # noqa: ASYNC251  # the command continues, and the loop does not

        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

        if started.exists():
            pid = int(started.read_text())
            await eventually(lambda pid=pid: has_ended(pid))


def has_ended(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE  # init may not have read the exit status yet
    return True
