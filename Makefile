# Two commands are enough on a fresh machine: `make demo` and `make test`.
# Every target sets up what it needs in .venv; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
PY := .venv/bin/python
# The demo has a database and files of its own, so that it never touches real work.
DEMO_ENV := DATABASE_URL=sqlite:///$(CURDIR)/.local/demo/croc.sqlite3 MEDIA_ROOT=$(CURDIR)/.local/demo/media DEBUG=0 REDIS_URL= SECRET_KEY= ALLOWED_HOSTS=localhost,127.0.0.1,[::1]
DEMO_PORT ?= 8000
TEST_WORKERS ?= 2
# One order, so that a failure comes back; CONTRIBUTING.md says how to look in others.
TEST_SEED ?= 1

.PHONY: help demo demo-check test soak lint format bench docs pictures audit constraints clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --upgrade 'pip>=25.1'

# No torch in here. (The build backend's word on editable installs is none for who types "make demo".)
.venv/.web: pyproject.toml constraints.txt | .venv/bin/python
	PYTHONWARNINGS=ignore $(PY) -m pip install --quiet -c constraints.txt -e '.[onnx]'
	@touch $@

.venv/.dev: pyproject.toml constraints.txt tools/install_torch.sh | .venv/bin/python
	bash tools/install_torch.sh $(PY)
	PYTHONWARNINGS=ignore $(PY) -m pip install --quiet -c constraints.txt -e '.[gpu,onnx]' --group dev
	# Only for its JSON schema of compose files; its own old dependencies stay out.
	$(PY) -m pip install --quiet --no-deps --upgrade --target .cache/compose docker-compose==1.29.2
	@touch $@ .venv/.web

demo: .venv/.web ## make, judge, release and score a small benchmark, then serve the site
	$(DEMO_ENV) $(PY) manage.py demo --serve --port $(DEMO_PORT)

demo-check: .venv/.web ## the same without serving; fails if anything is missing
	$(DEMO_ENV) $(PY) manage.py demo --check

test: .venv/.dev ## the whole suite; finds or starts PostgreSQL, Redis and Chromium
	bash tools/ensure_chromium.sh $(PY)
	$(PY) -m pytest -q -n $(TEST_WORKERS) --dist loadscope --randomly-seed=$(TEST_SEED) $(ARGS)

soak: .venv/.dev ## what takes minutes or gigabytes
	bash tools/ensure_chromium.sh $(PY)
	$(PY) -m pytest -q -m soak -p no:randomly $(ARGS)

lint: .venv/.dev ## style, imports, types, templates, migrations
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/lint-imports
	.venv/bin/mypy
	git ls-files -z 'templates/*.html' | xargs -0 .venv/bin/djade --check --target-version 5.2
	DATABASE_URL=sqlite:///$(CURDIR)/.local/lint.sqlite3 $(PY) manage.py makemigrations --check --dry-run

format: .venv/.dev ## put code and templates into shape
	.venv/bin/ruff check --fix --quiet . || true
	.venv/bin/ruff format .
	git ls-files -z 'templates/*.html' | xargs -0 .venv/bin/djade --target-version 5.2 || true

bench: .venv/.dev ## measure; NAME=queue for one; writes .bench/results.json
	$(PY) -m tests.benchmarks $(NAME) $(ARGS)

docs: .venv/.dev ## build the documentation into site/
	$(PY) tools/write_command_reference.py
	.venv/bin/mkdocs build --strict --quiet

pictures: .venv/.dev demo-check ## take pictures of the demo's pages; some go into docs/images/
	bash tools/ensure_chromium.sh $(PY)
	$(DEMO_ENV) $(PY) tools/take_pictures.py

audit: .venv/.dev ## security rules, and known holes of the dependencies (needs a network that reaches the database)
	bash tools/audit.sh $(PY)

constraints: .venv/.dev ## write constraints.txt from what is installed
	bash tools/write_constraints.sh $(PY)

clean: ## remove what the targets made, but no data
	rm -rf .venv site .bench .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
