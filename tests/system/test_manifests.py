"""conf/kubernetes and conf/compose: as the published schemas want them, and as the servers and the other pages are."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aeron_spark import doctor_memory
from tests.kit import container, native, needs, require

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "conf" / "kubernetes"
COMPOSE = ROOT / "conf" / "compose" / "compose.yaml"
STREAMS = 100
# The first that has sidecars by default; the validator brings the later ones.
LOWEST_KUBERNETES = "1.29"
LAYERS = ("archive", "node")


@pytest.fixture(autouse=True)
def _tools() -> None:
    require.beyond("validators of manifests")
    if absent := needs.absent("kubernetes-client"):
        require.missing(f"install {' '.join(absent)}, for the manifests")
    if shutil.which("check-jsonschema", path=str(Path(sys.executable).parent)) is None:
        require.missing("no kubernetes-validate, check-jsonschema: make build/.manifests")


def documents(text: str) -> list[Any]:
    import yaml

    return list(yaml.safe_load_all(text))


def rendered(layer: str) -> list[Any]:
    """What `kubectl apply -k` would send."""
    command = ["kubectl", "kustomize", KUBERNETES / layer]
    return documents(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def pod(layer: str) -> Any:
    (spec,) = [one["spec"]["template"]["spec"] for one in rendered(layer) if "template" in one.get("spec", {})]
    return spec


def faults(document: Any) -> list[str]:
    import kubernetes_validate

    found = []
    for version in (LOWEST_KUBERNETES, kubernetes_validate.latest_version()):
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            found.append(f"{version}: {error}")
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_kubernetes_takes(layer: str) -> None:
    assert [fault for document in rendered(layer) for fault in faults(document)] == []


def test_kubernetes_takes_the_template_of_executors() -> None:
    (template,) = documents((KUBERNETES / "executor.yaml").read_text("utf-8"))
    assert faults(template) == []


def test_the_validator_sees_a_misspelt_field() -> None:
    document = copy.deepcopy(next(one for one in rendered("archive") if one["kind"] == "StatefulSet"))
    document["spec"]["template"]["spec"]["terminationGracePeriod"] = 70
    assert len(faults(document)) == 2


def test_the_compose_file_is_as_its_specification() -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_shared_memory_is_as_long_as_the_doctor_says() -> None:
    """For as many streams as the comments beside the sizes name."""
    (compose,) = documents(COMPOSE.read_text("utf-8"))
    environment = compose["services"]["driver"]["environment"]
    (asked,) = {plan.size for plan in doctor_memory.plans(STREAMS, environment=environment)[:2]}
    assert compose["services"]["driver"]["shm_size"] == f"{asked}m"
    files = [str(KUBERNETES / "archive" / f"{name}.properties") for name in ("driver", "archive")]
    (asked,) = {plan.size for plan in doctor_memory.plans(STREAMS, files=files, environment={})[:2]}
    (shm,) = [volume["emptyDir"] for volume in pod("archive")["volumes"] if volume["name"] == "shm"]
    assert shm == {"medium": "Memory", "sizeLimit": f"{asked}Mi"}
    for one in servers("archive"):
        assert int(one["resources"]["limits"]["memory"].removesuffix("Mi")) >= int(asked) + 64, (
            "it counts for the container"
        )
    assert f"--shm-size {asked}m" in (ROOT / "docs" / "containers.md").read_text("utf-8")
    assert f"shm.options.sizeLimit={asked}Mi" in (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    for text in (COMPOSE, KUBERNETES / "archive" / "archive.yaml"):
        assert f"doctor --for-streams {STREAMS} " in text.read_text("utf-8")


def servers(layer: str) -> list[Any]:
    return [*pod(layer)["initContainers"], *pod(layer)["containers"]]


def test_the_layers_differ_in_volumes_alone() -> None:
    assert servers("archive") == servers("node")
    for name in ("driver", "archive"):
        archive, node = (KUBERNETES / layer / f"{name}.properties" for layer in LAYERS)
        assert archive.read_text("utf-8") == node.read_text("utf-8")


@pytest.mark.parametrize("layer", LAYERS)
def test_nothing_has_a_privilege(layer: str) -> None:
    told = pod(layer)["securityContext"]
    assert told["runAsNonRoot"] is True
    assert {told["runAsUser"], told["runAsGroup"]} == {container.USER}
    for one in servers(layer):
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_commands_and_probes_are_those_of_the_image() -> None:
    """Each program of a manifest is in the image, takes its options, and its settings are settings."""
    (compose,) = documents(COMPOSE.read_text("utf-8"))
    commands = [one["command"] for one in compose["services"].values()]
    commands += [one["healthcheck"]["test"][1:] for one in compose["services"].values()]
    for one in servers("archive"):
        commands.append(one["command"])
        commands += [one[probe]["exec"]["command"] for probe in ("startupProbe", "livenessProbe")]
    known = "".join((ROOT / "conf" / f"{name}.properties").read_text("utf-8") for name in ("driver", "archive"))
    for program, *options in commands:
        told = subprocess.run([native.executable(program), "--help"], capture_output=True, text=True, check=True).stdout
        assert all(option in told or option.startswith("/etc/aeron_spark/") for option in options), (program, options)
    settings = [name.lower().replace("_", ".") for one in compose["services"].values() for name in one["environment"]]
    for data in (one["data"] for one in rendered("archive") if one["kind"] == "ConfigMap"):
        settings += re.findall(r"^([\w.]+)=", "\n".join(data.values()), re.MULTILINE)
    assert len(settings) > 5
    assert [name for name in settings if f"#{name}=" not in known] == []
