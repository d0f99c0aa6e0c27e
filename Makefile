# Entry points. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
# The demo's installation: one folder that holds everything it makes.
PREFIX ?= $(shell [ "$$(id -u)" = 0 ] && echo /opt/ddtree || echo "$$HOME/.local/share/ddtree")
PORT ?= 8000
# Tokens a prompt in the comparison at the end.
TOKENS ?= 48
PLAY_ARGS = -e ddtree_prefix=$(PREFIX) -e ddtree_port=$(PORT) $(ARGS)

.PHONY: help
help: ## This list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14
	@echo
	@echo 'Variables: PREFIX=$(PREFIX) PORT=$(PORT) TOKENS=$(TOKENS) PYTHON=$(PYTHON) ARGS="further arguments of ansible-playbook"'

.PHONY: demo
demo: $(VENV)/.controller-installed ## Serve a small model on this machine with DDTree, and compare it with plain decoding.
	@$(VENV)/bin/ansible-playbook playbooks/local.yml $(PLAY_ARGS)
	@$(PREFIX)/venv/bin/ddtree compare-endpoint http://127.0.0.1:$(PORT)/v1 --max-tokens $(TOKENS)
	@echo
	@echo 'Serving at http://127.0.0.1:$(PORT)/v1 (OpenAI-compatible); end it with: make demo-stop'

.PHONY: demo-stop
demo-stop: $(VENV)/.controller-installed ## End the demo; only its folder stays.
	@$(VENV)/bin/ansible-playbook playbooks/stop.yml $(PLAY_ARGS)
	@echo 'Stopped. What is left lies in $(PREFIX); delete that folder to be rid of it.'

.PHONY: test
test: ## Linters, unit tests, and the whole deployment on a fresh node (as root: installs what it needs by apt).
	@tests/run.sh

.PHONY: lint
lint: $(VENV)/.dev-installed ## Linters alone.
	@tests/run.sh lint

.PHONY: unit
unit: $(VENV)/.dev-installed ## Unit tests alone.
	@tests/run.sh unit

.PHONY: molecule
molecule: $(VENV)/.dev-installed ## The deployment on a fresh node alone.
	@tests/run.sh molecule

.PHONY: lock
lock: ## Renew the lock files of requirements/.
	@requirements/lock.sh

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV) || { echo 'No virtual environment could be made with $(PYTHON); on Debian and Ubuntu: apt install python3-venv' >&2; rm -rf $(VENV); exit 1; }

# A stamp is written last, so an interrupted install is repeated.
$(VENV)/.%-installed: requirements/%.lock | $(VENV)/bin/python
	@echo 'Installing requirements/$*.lock in $(VENV) …'
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
