"""docker-compose.yml against its schema and against the code that it starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from croc_annotate import settings as settings_module

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"].startswith("croc-annotate")}


def test_the_file_follows_the_compose_schema():
    path = ROOT / ".cache/compose/compose/config/compose_spec.json"
    if not path.exists():
        pytest.skip("no compose schema: `make test` installs it into .cache/")
    jsonschema.Draft201909Validator(json.loads(path.read_text())).validate(COMPOSE)


def settings_variables() -> set[str]:
    source = Path(settings_module.__file__).read_text()
    gunicorn = (ROOT / "deploy" / "gunicorn.conf.py").read_text()
    found = re.findall(r"env\.\w+\(\s*\"([A-Z0-9_]+)\"", source)
    return set(found) | set(re.findall(r"environ\.get\(\"([A-Z0-9_]+)\"", gunicorn))


def test_the_services_of_a_real_study_are_there():
    assert set(SERVICES) == {
        "nginx",
        "web",
        "migrate",
        "worker-web",
        "worker-gpu",
        "scheduler",
        "postgres",
        "redis",
        "store",
    }


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_exists_in_the_settings(name: str):
    assert set(OURS[name]["environment"]) <= settings_variables()


def test_no_secret_has_a_default():
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("SECRET_KEY", "PSEUDONYM_KEY", "POSTGRES_PASSWORD", "S3_SECRET_ACCESS_KEY"):
        for use in re.findall(r"\$\{" + name + r"[^}]*\}", text):
            assert use.startswith("${" + name + ":?"), use


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_limited(name: str):
    assert SERVICES[name]["restart"] in {"unless-stopped", "no"}
    if name != "migrate":
        assert SERVICES[name]["deploy"]["resources"]["limits"]["memory"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_containers_run_without_root_and_cannot_write_their_code(name: str):
    service = OURS[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate", "scheduler", "worker-gpu"}))
def test_every_lasting_service_has_a_health_check(name: str):
    assert SERVICES[name]["healthcheck"]["test"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_commands_exist(name: str):
    command = SERVICES[name]["command"]
    if command[0] == "celery":
        assert command[:3] == ["celery", "-A", "croc_annotate"]
        if "-Q" in command:
            assert command[command.index("-Q") + 1] in {"web", "gpu"}
    elif command[0] == "gunicorn":
        assert (ROOT / command[command.index("-c") + 1]).is_file()
    else:
        assert command[:2] == ["python", "manage.py"]
        from django.core.management import get_commands

        assert command[2] in get_commands()


def test_named_volumes_and_mounted_files_exist():
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).is_file()
            else:
                assert source in COMPOSE["volumes"]


def test_nginx_gets_every_value_that_its_template_asks_for():
    template = (ROOT / "deploy" / "nginx" / "croc.conf.template").read_text()
    asked = set(re.findall(r"\$\{([A-Z_]+)\}", template))
    assert asked == set(SERVICES["nginx"]["environment"])


def test_the_example_environment_names_every_required_value():
    text = (ROOT / "docker-compose.yml").read_text()
    required = set(re.findall(r"\$\{([A-Z0-9_]+):\?", text))
    example = set(
        re.findall(r"^([A-Z0-9_]+)=", (ROOT / "deploy" / "env.example").read_text(), re.M)
    )
    assert required <= example


def test_the_build_targets_exist():
    dockerfile = (ROOT / "Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.M))
    assert {service["build"]["target"] for service in OURS.values()} <= stages
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
