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
    ours = set(found) | set(re.findall(r"environ\.get\(\"([A-Z0-9_]+)\"", gunicorn))
    return ours | {"MPLCONFIGDIR"}  # matplotlib's own


def test_the_services_of_a_real_study_are_there():
    assert set(SERVICES) == {
        "nginx",
        "web",
        "prepare",
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


# What the topology decides: another value in .env would break it, or weaken it.
NOT_FOR_ENV = {
    "DEBUG", "HTTPS", "MEDIA_ROOT", "STATIC_ROOT", "REDIS_PREFIX", "S3_PUBLIC_ORIGIN",
    "S3_URL_SECONDS", "PROMETHEUS_MULTIPROC_DIR",
}  # fmt: skip


def test_every_setting_can_be_given_in_the_env_file():
    """A site that wants its organisation's sign-in or a retention must not edit this file."""
    assert settings_variables() - set(OURS["web"]["environment"]) <= NOT_FOR_ENV


def test_no_secret_has_a_default():
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("SECRET_KEY", "PSEUDONYM_KEY", "POSTGRES_PASSWORD", "S3_SECRET_ACCESS_KEY"):
        for use in re.findall(r"\$\{" + name + r"[^}]*\}", text):
            assert use.startswith("${" + name + ":?"), use


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_limited(name: str):
    assert SERVICES[name]["restart"] in {"unless-stopped", "no"}
    assert SERVICES[name]["deploy"]["resources"]["limits"]["memory"]
    # A disk that fills with logs ends the study.
    assert SERVICES[name]["logging"]["options"]["max-size"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_nobody_gains_rights_and_images_are_pinned(name: str):
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
    if name not in OURS:
        _, _, tag = SERVICES[name]["image"].partition(":")
        assert tag not in {"", "latest"}


def test_only_nginx_is_reached_from_outside_and_first_from_this_machine_only():
    assert [name for name, s in SERVICES.items() if "ports" in s] == ["nginx"]
    assert SERVICES["nginx"]["ports"] == ["${HTTP_BIND:-127.0.0.1}:${HTTP_PORT:-8080}:8080"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis", "store"):
        assert SERVICES[name]["networks"] == ["inside"]


def test_health_checks_ask_hosts_that_the_site_answers_to():
    allowed = SERVICES["web"]["environment"]["ALLOWED_HOSTS"].split(",")
    for service in ("web", "nginx"):
        found = re.findall(
            r"http://([\d.a-z]+):", " ".join(SERVICES[service]["healthcheck"]["test"])
        )
        assert found
        assert set(found) <= set(allowed)


def test_services_meet_by_the_names_that_the_settings_use():
    """postgres:5432, redis:6379, store:9000, web:8000: each a service, at the port it listens on."""
    text = json.dumps([s.get("environment", {}) for s in SERVICES.values()])
    found = set(re.findall(r"(?:@|://|\"| )([a-z]+):(\d{4})\b", text))
    assert found >= {("postgres", "5432"), ("redis", "6379"), ("store", "9000"), ("web", "8000")}
    assert {name for name, _ in found} <= set(SERVICES)
    assert SERVICES["web"]["environment"]["GUNICORN_BIND"].endswith(":8000")
    assert "server ${WEB_UPSTREAM}" in (ROOT / "deploy/nginx/croc.conf.template").read_text()


def test_writable_folders_belong_to_the_user_that_runs():
    """A named volume takes over the owner of the folder in the image that it covers."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    [owned] = re.findall(r"chown -R croc: (.+)$", dockerfile, re.M)
    for name, service in OURS.items():
        for volume in service.get("volumes", []):
            _, target, *mode = volume.split(":")
            assert mode == ["ro"] or target in owned.split(), f"{name}: {target}"


def test_static_files_are_collected_into_the_volume_that_nginx_serves():
    assert SERVICES["prepare"]["command"][2] == "prepare_site"
    assert "static:/app/static-collected" in SERVICES["prepare"]["volumes"]
    assert "static:/srv/static:ro" in SERVICES["nginx"]["volumes"]
    assert SERVICES["nginx"]["environment"]["STATIC_FILES"] == "/srv/static"
    assert "STATIC_ROOT=/app/static-collected" in (ROOT / "Dockerfile").read_text()


def test_images_from_the_store_pass_nginx_only():
    template = (ROOT / "deploy/nginx/croc.conf.template").read_text()
    prefix = SERVICES["web"]["environment"]["X_ACCEL_PREFIX"]
    assert re.search(rf"location {prefix} {{\n\s+internal;", template)


def test_the_dockerfile_runs_nothing_as_root():
    dockerfile = (ROOT / "Dockerfile").read_text()
    for stage in re.split(r"^FROM ", dockerfile, flags=re.M)[1:]:
        name = re.match(r"\S+ AS (\S+)", stage)[1]
        users = re.findall(r"^USER (\S+)$", stage, re.M)
        if name in {"web", "gpu"}:
            assert users[-1] == "croc"
    assert "useradd --system --uid 10001" in dockerfile
    assert not re.search(r"^(ARG|ENV) .*(KEY|PASSWORD|TOKEN)", dockerfile, re.M)


@pytest.mark.parametrize("name", ["web", "worker-web", "scheduler", "worker-gpu", "nginx"])
def test_each_service_waits_for_what_it_needs(name: str):
    wanted = {"nginx": {"web"}}.get(name, {"prepare"})
    assert set(SERVICES[name]["depends_on"]) >= wanted
    for other in SERVICES["prepare"]["depends_on"]:
        assert SERVICES[other]["healthcheck"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_containers_run_without_root_and_cannot_write_their_code(name: str):
    service = OURS[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"prepare", "worker-gpu"}))
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
            if not re.match(r"[a-z]", source):
                assert (ROOT / source).is_file()
            else:
                assert source in COMPOSE["volumes"]


def test_nginx_gets_every_value_that_its_template_asks_for():
    template = (ROOT / "deploy" / "nginx" / "croc.conf.template").read_text()
    asked = set(re.findall(r"\$\{([A-Z_]+)\}", template))
    assert asked == set(SERVICES["nginx"]["environment"])
    # What the image's envsubst would fill besides: nothing that nginx means for itself.
    assert "$host" in template
    assert "HOST" not in asked


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
