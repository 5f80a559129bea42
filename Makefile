# Every command runs in this checkout's own environments, whatever is activated.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
# The same on every machine; and Java finds a path with an umlaut only in a UTF-8 locale.
export LC_ALL = C.UTF-8

.DEFAULT_GOAL := help
.PHONY: help setup archives deploy-tools demo test test-unit test-integrations test-rights test-long check check-deploy audit scan format browser bench-append bench-audit bench-keys bench-page bench-publish bench-runs bench-steps bench-text bench-upkeep fuzz-files package wheel release lock clean

help: ## List these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 22

setup: ## Install everything that is missing: .venv, Java and the jars
	@for python in python3.11 python3 python; do \
		if $$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then \
			exec $$python -m infra.setup; \
		fi; \
	done; \
	echo 'No Python 3.11 was found on the PATH (tried python3.11, python3, python).' >&2; exit 1

archives: setup ## Archive the classes of Spark and Nessie: each later start takes half the work
	@.venv/bin/python -m infra.local.class_archives

deploy-tools: setup ## Install the deployment tools: sam, osls, cfn-lint, pip-audit
	@.venv/bin/python -m infra.setup deploy

browser: setup ## Check for a Chromium for the tests, and install it if it is missing
	@.venv/bin/python -m infra.browser

demo: setup ## Show the whole path on real flights, with good files and a bad one
	@.venv/bin/lakegate demo

# What needs no server runs on all cores; the rest in two lanes, a Spark or a stack in each. Tests
# that share a stack are one lane's (tests/conftest.py), and the longest begin first.
ALONE = not spark and not stack and not deploy
SPARK = spark and not stack
SERVED = tests/e2e tests/deploy tests/contract
LANES = -n 2 --durations 20

test: deploy-tools browser archives ## Run all tests: units, then Spark, the whole stack, integrations, scanners
	@.venv/bin/python -m pytest -m '$(ALONE)' -n auto
	@.venv/bin/python -m pytest -m '$(SPARK)' $(LANES) --dist loadfile tests/spark
	@.venv/bin/python -m pytest -m 'not ($(ALONE)) and not ($(SPARK))' $(LANES) --dist loadscope --no-loadscope-reorder $(SERVED)
	@$(MAKE) --no-print-directory test-integrations scan

test-unit: setup ## Run the tests that need no Java and no server
	@.venv/bin/python -m pytest -m '$(ALONE)' -n auto

# Other stories each time; LAKEGATE_SEED tells those of an earlier run once more.
# In an environment of their own, as these tools pin much of what they need.
test-integrations: setup ## Run the sensors in the real Airflow and Dagster, installed for it alone
	@.venv/bin/uv venv --quiet --allow-existing --python .venv/bin/python .venv-integrations
	@.venv/bin/uv pip sync --quiet --python .venv-integrations/bin/python requirements/integrations.txt
	@AIRFLOW_HOME="$(CURDIR)/.venv-integrations/airflow" .venv-integrations/bin/python -m pytest \
		--confcutdir tests/integrations tests/integrations

test-rights: setup ## List the rights that no call of the last `make test` needed
	@.venv/bin/python -m tests.rights_report

test-long: export LAKEGATE_SEED := $(or $(LAKEGATE_SEED),$(shell date +%s))
test-long: export LAKEGATE_RUNS := 50000
test-long: export LAKEGATE_SCHEDULES := 5000
test-long: export LAKEGATE_MATRIX := 1
test-long: deploy-tools ## Run many more random stories, every fault and kill, 64 files at once
	@echo "again: make test-long LAKEGATE_SEED=$$LAKEGATE_SEED"
	@.venv/bin/python -m pytest tests/unit/pipeline/test_machine.py tests/unit/pipeline/test_schedules.py \
		tests/unit/pipeline/test_crashes.py tests/unit/operations/test_rebuild_ledger.py -n auto
	@.venv/bin/python -m pytest tests/e2e/test_shared_kill.py tests/e2e/test_kill.py \
		tests/deploy/test_at_once.py

check-deploy: deploy-tools ## Lint and compile the descriptors with every tool, and compare
	@.venv/bin/python -m pytest -m deploy

check: setup ## Lint, check the formatting, the directions of imports and the types
	@.venv/bin/ruff check
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/ruff format --check
	@.venv/bin/mypy

audit: deploy-tools ## Look up known vulnerabilities of all pinned packages
	@for lock in requirements.txt requirements/*.txt; do \
		echo "$$lock"; .venv-deploy/bin/pip-audit --strict --disable-pip --require-hashes \
		--progress-spinner off --requirement $$lock || exit 1; \
	done
	@.venv-deploy/bin/npm audit --package-lock-only

# In an environment of its own, as checkov pins much of what the deployment tools need.
scan: deploy-tools ## Scan the templates and GitHub's workflows for insecure settings
	@.venv/bin/uv venv --quiet --allow-existing --python .venv/bin/python .venv-scan
	@.venv/bin/uv pip sync --quiet --python .venv-scan/bin/python --only-binary :all: \
		--require-hashes requirements/scan.txt
	@.venv/bin/python -m pytest tests/scans

format: setup ## Format the code and fix lint errors that can be fixed
	@.venv/bin/ruff check --fix --exit-zero
	@.venv/bin/ruff format

bench-append: setup ## Time an ingestion beside a plain append of the same file
	@.venv/bin/python -m benchmarks.append

bench-audit: setup ## Time the audit beside Great Expectations and cuallee, installed for it alone
	@.venv/bin/uv venv --quiet --allow-existing --python .venv/bin/python .venv-bench
	@.venv/bin/uv pip sync --quiet --python .venv-bench/bin/python \
		requirements/dev.txt requirements/bench.txt
	@.venv-bench/bin/python -m benchmarks.audit

bench-keys: setup ## Time a key that must be unique in the whole table, beside grouping it
	@.venv/bin/python -m benchmarks.keys

bench-page: browser ## Time the quality page's first views, and take the pictures of the README
	@.venv/bin/python -m benchmarks.page --pictures docs/images

bench-publish: setup ## Time publishing: taken and refused branches, many at once, large tables
	@.venv/bin/python -m benchmarks.publish

bench-runs: setup ## Time many small files: bursts, a flow, a killed run, plain appends
	@.venv/bin/python -m benchmarks.runs

bench-steps: setup ## Count one file's requests to S3 and Nessie, and time its steps
	@.venv/bin/python -m benchmarks.steps

bench-text: setup ## Time reading CSV and JSON beside Spark's own readers, and ingesting them
	@.venv/bin/python -m benchmarks.text

bench-upkeep: setup ## Time reads of many small files, and files that land beside a compaction
	@.venv/bin/python -m benchmarks.upkeep

fuzz-files: setup ## Ingest 1,000 damaged files of every format, and compare what is published
	@.venv/bin/python -m benchmarks.damage
	@.venv/bin/python -m benchmarks.damage --groups
	@.venv/bin/python -m benchmarks.damage --lies
	@.venv/bin/python -m benchmarks.lies

package: setup ## Build what is deployed under build/: the Lambdas' zip, the job
	@.venv/bin/python -m infra.package

wheel: setup ## Build the command line's package under build/wheel, for machines without a checkout
	@.venv/bin/uv build --quiet --wheel --no-build-isolation --python .venv/bin/python -o build/wheel

release: deploy-tools ## Build what a release has under build/release: wheel, code, templates, SBOMs
	@.venv/bin/python -m infra.release
	@.venv/bin/uv build --quiet --wheel --no-build-isolation --python .venv/bin/python -o build/release

# Locked for the Lambdas' platform; the hashes are those of every platform's files.
LOCK = .venv/bin/uv pip compile --quiet --generate-hashes --no-annotate --no-emit-index-url \
	--no-emit-find-links --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) \
	--python-platform x86_64-manylinux_2_28 --python-version

lock: setup ## Compile the requirements files again (UPGRADE=1: to the newest versions)
	@mkdir -p build
	@.venv/bin/python -m infra.versions > build/versions.txt
	@$(LOCK) 3.11 pyproject.toml --group dev -c build/versions.txt -o requirements/dev.txt
	@$(LOCK) 3.13 --group functions -c requirements/dev.txt -o requirements.txt
	@$(LOCK) 3.11 --group job -c requirements/dev.txt -o requirements/job.txt
	@$(LOCK) 3.11 --group build -c requirements/dev.txt -o requirements/build.txt
	@$(LOCK) 3.11 pyproject.toml --extra page -c requirements/dev.txt -o requirements/page.txt
	@$(LOCK) 3.11 --group bench -c requirements/dev.txt -o requirements/bench.txt
	@$(LOCK) 3.11 pyproject.toml --extra airflow --extra dagster --group integrations \
		-o requirements/integrations.txt
	@$(LOCK) 3.11 --group deploy -o requirements/deploy.txt
	@$(LOCK) 3.11 --group scan -o requirements/scan.txt
	@$(LOCK) 3.13 --group ministack -c build/versions.txt -o requirements/ministack.txt

clean: ## Remove built files; keep the jars, which all clones share
	@if [ -e .lakegate/stack.json ] && [ -x .venv/bin/lakegate ]; then .venv/bin/lakegate down; fi
	@rm -rf .venv .venv-bench .venv-deploy .venv-integrations .venv-ministack .venv-scan node_modules .lakegate build .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
