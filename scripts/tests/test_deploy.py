"""Tests for the service files: the container file's steps run, and the server answers an unprivileged user."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import psutil
import pytest
import yaml

from cc_server.clients import parse_clients
from doc_pages import free_port
from workspace import ROOT

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer

DEPLOY = ROOT / "deploy"
PORT = "8400"
TOKEN = "token-of-alice"
CLIENTS = f"""
[clients.alice]
token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"
tokens_per_day = 1
access = "all"
"""
STEP_SECONDS = 300.0
# This machine's settings for package downloads.
PASSED_ON = re.compile(r"(PIP_|UV_|SSL_CERT_)\w+|(https?|no)_proxy", re.IGNORECASE)
CAN_MOUNT = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare") is not None


def steps_of(text: str) -> list[tuple[str, str]]:
    """Return the instructions in a container file, with their arguments."""
    lines = re.sub(r"^#.*\n|\\\n", "", text, flags=re.MULTILINE).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line)]


class Image:
    """Executes a container file's steps in an overlay over this machine, which takes the place of the base image.

    All stages share the overlay, so that a copy from another stage has no effect.
    """

    def __init__(self, folder: Path, context: Path, steps: list[tuple[str, str]]) -> None:
        self.files, self._folder, self._user = folder / "files", folder, "root"
        for name in ("files", "work", "root"):
            (folder / name).mkdir(parents=True)
        python = Path(sys.base_prefix).resolve()
        self._environment = {"PATH": f"{python}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        # In an image other users can reach the interpreter.
        self.run_outside("".join(f"chmod o+x '{{root}}{parent}' && " for parent in python.parents) + "true")
        for name, rest in steps:
            match name:
                case "RUN":
                    run(self.command(["sh", "-c", rest]))
                case "COPY" if not rest.startswith("--from="):
                    source, target = rest.split()
                    target += source if target.endswith("/") else ""
                    copy = f"cp -a --no-preserve=ownership '{context / source}' '{{root}}{target}'"
                    self.run_outside(f"mkdir -p \"$(dirname '{{root}}{target}')\" && {copy}")
                case "ENV":
                    self._environment |= dict(setting.split("=", 1) for setting in rest.split())
                case "USER":
                    self._user = rest
                case _:
                    pass

    def command(self, words: list[str], **env: str) -> list[str]:
        """Return the command line that runs a command in the image, as its user; the command is process 1."""
        settings = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        variables = {**settings, "HOME": "/root", **self._environment, **env}
        chroot = ["chroot", f"--userspec={self._user}", str(self._folder / "root")]
        names = [f"{name}={value}" for name, value in variables.items()]
        return self._mounted(f"exec {shlex.join([*chroot, 'env', '-i', '-C', variables['HOME'], *names, *words])}")

    def run_outside(self, script: str) -> None:
        """Run a shell script on this machine, in which `{root}` is the root folder of the image."""
        run(self._mounted(script.replace("{root}", str(self._folder / "root"))))

    def _mounted(self, script: str) -> list[str]:
        root = self._folder / "root"
        mounts = (
            f"mount -t overlay overlay -o lowerdir=/,upperdir={self.files},workdir={self._folder}/work {root} && "
            f"mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc && "
        )
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mounts + script]


def run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STEP_SECONDS)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"


def test_the_files_of_a_service_fit_together() -> None:
    """MSG-107. User, ports, paths and arguments are the same in all files, and the image has no login."""
    dockerfile = (DEPLOY / "Dockerfile").read_text("utf-8")
    last = dict(steps_of(dockerfile))
    assert last["USER"] == "10001"  # Kubernetes' runAsNonRoot cannot check a name
    arguments = json.loads(last["CMD"])
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    unit = (DEPLOY / "cc-server.service").read_text("utf-8")
    for text in (compose, unit):
        assert "ANTHROPIC_API_KEY=…" in text  # in a comment alone
        assert text.count("ANTHROPIC_API_KEY") == 1
    assert f"127.0.0.1:{PORT}:{PORT}" in compose
    assert "uid=10001" in compose and "--uid 10001" in dockerfile
    for option, path in zip(arguments[::2], arguments[1::2], strict=True):
        if option != "--host":
            assert f"{option} {path}" in unit
            assert path.rpartition("/")[0] in compose
    example = parse_clients(tomllib.loads((DEPLOY / "clients.example.toml").read_text("utf-8")))
    assert [client.name for client in example.clients] == ["alice", "nightly-report", "prometheus"]


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_manifests_are_valid_and_agree_with_the_image(version: str) -> None:
    """MSG-164. A misspelled field is an error, too."""
    text = (DEPLOY / "kubernetes.yaml").read_text("utf-8")
    manifests = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(text)}
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)
    deployment, scaler = manifests["Deployment"], manifests["HorizontalPodAutoscaler"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(scaler | {"spec": scaler["spec"] | {"minReplica": 3}}, version, strict=True)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == manifests["Service"]["spec"]["selector"]
    assert manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    pod = deployment["spec"]["template"]["spec"]
    [server], [copy] = pod["containers"], pod["initContainers"]
    last = dict(steps_of((DEPLOY / "Dockerfile").read_text("utf-8")))
    options = dict(argument.split("=", 1) for argument in server["args"])
    command = json.loads(last["CMD"])
    assert dict(zip(command[::2], command[1::2], strict=True)).items() <= options.items()
    assert copy["command"][-1] == options["--clients"]
    assert (str(pod["securityContext"]["runAsUser"]), server["ports"][0]["containerPort"]) == (last["USER"], int(PORT))
    places = {place["mountPath"] for place in server["volumeMounts"]}
    assert places == {"/etc/cc-server", last["VOLUME"], last["WORKDIR"], "/tmp"}
    assert {place["name"] for place in server["volumeMounts"]} <= {volume["name"] for volume in pod["volumes"]}
    grace = server["lifecycle"]["preStop"]["sleep"]["seconds"] + int(options["--grace-seconds"])
    assert grace < pod["terminationGracePeriodSeconds"]
    probes = {name: server[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert probes == {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}
    assert server["resources"]["requests"]["memory"] == f"{300 * int(options['--size']) + 100}M"
    rules = yaml.safe_load((DEPLOY / "kubernetes-metrics.yaml").read_text("utf-8"))["rules"]["custom"]
    [metric] = scaler["spec"]["metrics"]
    assert [rule["seriesQuery"].partition("{")[0] for rule in rules] == [metric["pods"]["metric"]["name"]]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    """MSG-107."""
    text = (DEPLOY / "cc-server.service").read_text("utf-8")
    unit = tmp_path / "cc-server.service"
    unit.write_text(text.replace("/opt/cc-server/bin/cc-server", sys.executable), encoding="utf-8")
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    # A service without any protection has an exposure of 96 in 100.
    arguments = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    confined = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert confined.returncode == 0, confined.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not CAN_MOUNT, reason="only root on Linux can mount an overlay")
def test_the_container_files_steps_give_an_unprivileged_server(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MSG-107. It is healthy, answers, counts in its volume, and ends in peace."""
    port = str(free_port())
    steps = steps_of((DEPLOY / "Dockerfile").read_text("utf-8").replace(PORT, port))
    last, image = dict(steps), Image(tmp_path / "image", ROOT, steps)
    clients = tmp_path / "clients.toml"
    clients.write_text(CLIENTS, encoding="utf-8")
    image.run_outside(
        f"install -D -m 0600 -o 10001 -g 10001 '{clients}' '{{root}}/etc/cc-server/clients.toml' && "
        "chown 10001 '{root}/etc/cc-server'"
    )
    login = {name: value for name, value in loopback.env().items() if name.startswith("ANTHROPIC_")}
    command = image.command([*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])], **login)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            deadline, health = time.monotonic() + 60, json.loads(last["HEALTHCHECK"].partition(" CMD ")[2])
            while subprocess.run(image.command(health), capture_output=True, check=False).returncode:
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.2)
            assert [status(port, "wrong"), status(port, TOKEN), status(port, TOKEN)] == [401, 200, 429]
            family = psutil.Process(process.pid).children(recursive=True)
            assert sys.platform != "win32"  # for the type checker
            users = {child.name(): child.uids().real for child in family}
            assert users["tini"] == users["cc-server"] == users["claude"] == 10001
            next(child for child in family if child.name() == "tini").send_signal(signal.SIGTERM)
            assert process.communicate(timeout=60) == (f"export ANTHROPIC_BASE_URL=http://0.0.0.0:{port}\n", None)
            assert not [child for child in family if child.is_running()]
        finally:
            process.kill()
    usage = image.files / "var/lib/cc-server/usage.sqlite"
    assert (usage.stat().st_mode & 0o777, usage.stat().st_uid) == (0o600, 10001)


def status(port: str, token: str) -> int:
    body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
    return httpx2.post(
        f"http://127.0.0.1:{port}/v1/messages", json=body, headers={"x-api-key": token}, timeout=60
    ).status_code
