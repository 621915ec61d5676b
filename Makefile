# `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Swift builds with all cores by itself, and two builds of one directory wait for each other.
.NOTPARALLEL:

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
# Options for the tests (`make test TESTFLAGS='--filter Race'`) and the bench (`make bench BENCHFLAGS='-n 100'`).
TESTFLAGS ?=
BENCHFLAGS ?=

# Imports of what a target does not declare are errors. There are no XCTest tests; without the option their runner
# would report that it ran none of them. One test at a time: many start servers, and some look at the clock.
BUILD := $(SWIFT) build --explicit-target-dependency-import-check error
TEST := $(SWIFT) test --explicit-target-dependency-import-check error --disable-xctest --no-parallel $(TESTFLAGS)

# Options for the measurements: `make perf PERFFLAGS='--only cpu,body --peers yes'`.
PERFFLAGS ?=
# The commit that `make perf` compares with: `make perf AGAINST=main PERFFLAGS='--only cpu --bound 1.02'`.
AGAINST ?=
# What `make libcurl-matrix` runs, on which releases of Debian's source packages, and on which libraries that are already built:
# `make libcurl-matrix LIBCURL_RELEASES= LIBCURL_DIRS='/opt/curl-8.4 /opt/curl-8.5'`.
MATRIX_TESTS ?= CurlConformanceTests|NetOptStormTests|HostileServerTests|TogetherTests|HeldBodiesTests|RefusalTests|UnsentRequestsTests|TunnelTests|SplitUploadTests|FullSocketTests|SharedPortTests
LIBCURL_RELEASES ?= oldest 8.4 8.5 newest
LIBCURL_DIRS ?=
# How often `make kill-list` kills.
KILL_ROUNDS ?= 200
# How often `make kill-cache` kills.
KILL_CACHE_ROUNDS ?= 300

# The origins of the lab; `Tests/Lab/lab --help` has the options.
LAB_ORIGINS ?=
# How often `make lab-check` ranks.
LAB_RUNS ?= 20

# Which runs of the simulator: `make simulate SEEDS=100000 FROM=5001`. Which wrong policies: `make mutants MUTANTS='no-blame no-rest'`.
SEEDS ?= 5000
FROM ?= 1
MUTANTS ?=

# How long `make storm` lasts, and which requests it sends: `make storm SECONDS=3600 SEED=7`. How many answers `make storm-trial` counts.
SECONDS ?= 600
SEED ?= 1
ANSWERS ?= 10000

# Words of the names of cells that `make faults` runs: `make faults FAULTS_ONLY='SIGSTOP,50 at once'`. The table of some cells is not kept.
FAULTS_ONLY ?=
# How many processes share the cells; more than one takes root.
FAULTS_JOBS ?= $(if $(filter 0,$(shell id -u)),6,1)
# How many requests a second `make fault-soak` sends: `make fault-soak SECONDS=600 SEED=7 RATE=200 AGAINST=main`.
RATE ?= 200

# Parts of the names of scenarios that `make hostile` runs; all unless it is set.
HOSTILE_ONLY ?=

# A folder with checkouts of Swift's packages: `make adapters PACKAGES=~/checkouts`.
PACKAGES ?=

# What `make sanitize` runs.
SANITIZED := NetOptEngineTests|NetOptCachingTests|NetOptCryptoTests|NetOptSQLiteTests
# How long `make fuzz` fuzzes each target, and which: `make fuzz FUZZ_SECONDS=3600 FUZZ_TARGETS=lines`.
FUZZ_SECONDS ?= 180
FUZZ_TARGETS ?= structured-fields messages lines canonical key-rings lists configurations minisign histories cache-headers saved-runs dns-messages heads chunks frames

.PHONY: help dependencies build test api docs adapters bench lab-up lab-check lab-down install simulate mutants storm storm-trial faults fault-soak hostile lint sanitize tsan asan coverage \
  perf perf-check perf-record libcurl-matrix soak kill-list kill-cache fuzz-build fuzz perf-build clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

dependencies: ## Install the Debian packages that are missing
	@scripts/install-dependencies

# Swift's libraries are linked in: the program runs where Swift is not installed, and takes less memory.
build: dependencies ## Build .build/release/netopt
	$(BUILD) -c release --product netopt --static-swift-stdlib

test: dependencies ## Run the tests
	$(TEST)
	$(MAKE) --no-print-directory simulate mutants

simulate: dependencies ## Run the routing policy in SEEDS simulated networks
	$(BUILD) -c release --product netopt-simulate
	.build/release/netopt-simulate --seeds $(SEEDS) --from $(FROM)

mutants: dependencies ## Make the routing policy wrong in a copy, and look whether the simulator notices
	scripts/mutants $(MUTANTS)

storm: dependencies ## Load clients at failing servers for SECONDS, and check every answer
	$(BUILD) -c release --product netopt-storm
	.build/release/netopt-storm --seconds $(SECONDS) --seed $(SEED)

storm-trial: dependencies ## Count answers to other requests at two hosts that share an address
	$(BUILD) -c release --product netopt-storm
	.build/release/netopt-storm trial --answers $(ANSWERS)

faults: dependencies ## Run every cell of the fault matrix beside curl, and keep the table; half an hour as root
	$(BUILD) -c release --product netopt-faults
	.build/release/netopt-faults --jobs $(FAULTS_JOBS) $(if $(FAULTS_ONLY),--only '$(FAULTS_ONLY)',--write docs/reliability.md)

fault-soak: dependencies ## Send requests for SECONDS while one server after the other fails, also AGAINST=COMMIT
	$(BUILD) -c release --product netopt-faults
	$(if $(AGAINST),SWIFT='$(SWIFT)' scripts/fault-soak '$(AGAINST)',.build/release/netopt-faults soak) \
	  --seconds $(SECONDS) --seed $(SEED) --rate $(RATE) --most-p99 600

hostile: dependencies ## Run all scenarios of the hostile servers in all modes: HOSTILE_ONLY=flood,settings
	HOSTILE_MODES=all HOSTILE_ONLY='$(HOSTILE_ONLY)' $(TEST) --filter NetOptHostileTests

bench: build ## Measure origins that are started on this machine, in the lab when it may
	Tests/Lab/lab bench .build/release/netopt $(BENCHFLAGS)

lab-up: dependencies ## Start a network with known round trips and loss: LAB_ORIGINS='near:rtt=5 lossy:rtt=20,loss=2'
	@scripts/install-dependencies lab
	@Tests/Lab/lab up $(LAB_ORIGINS)

lab-check: build ## Measure in the lab, and compare with the truth; takes root
	@scripts/install-dependencies lab
	Tests/Lab/check .build/release/netopt $(LAB_RUNS)

lab-down: ## End that network
	@Tests/Lab/lab down

install: build ## Install netopt to PREFIX, /usr/local by default
	install -D -s -m 755 .build/release/netopt "$(DESTDIR)$(PREFIX)/bin/netopt"

api: dependencies ## Write the public API to docs/api
	$(BUILD)
	scripts/api write

docs: dependencies ## Write the documentation of the library as a static site to .build/docs
	$(BUILD)
	scripts/docs

adapters: dependencies ## Compile the adapters of the articles with the packages in PACKAGES
	@if [ -z "$(PACKAGES)" ]; then echo "name the folder with the checkouts: make adapters PACKAGES=DIR" >&2; exit 1; fi
	scripts/adapters '$(PACKAGES)'

lint: dependencies ## Check format, layers, file lengths, scripts and the public API
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests $(wildcard Benchmarks Examples Fuzz)
	scripts/check-layers
	scripts/mutants --check
	@if grep -rnE '\.(lower|upper)cased\(\)' Sources/NetOpt Sources/NetOptC* Sources/NetOptSigning --include='*.swift' \
	  | grep -v '^Sources/NetOptCommands'; then echo "What HTTP compares in any case is ASCII: use loweredASCII" >&2; exit 1; fi
	python3 -m doctest Benchmarks/perf/report.py Benchmarks/perf/ratios.py
	@find Sources -name '*.swift' -exec wc -l {} + | awk \
	  '$$1 > 400 && $$2 != "total" { print $$2 ": " $$1 " lines; split it, 400 is the most"; bad = 1 } END { exit bad }' >&2
	@if command -v shellcheck >/dev/null; then \
	  shellcheck scripts/install-dependencies scripts/check-layers scripts/signing-peers scripts/cache-peers scripts/bench-peers scripts/trace-peers \
	    scripts/fault-soak scripts/libcurl-matrix .ci/run; \
	else \
	  echo "shellcheck is not installed: the scripts are not checked" >&2; \
	fi
	$(BUILD)
	scripts/api check

sanitize: dependencies ## Run the tests of the modules with C or concurrency under both sanitizers
	$(MAKE) --no-print-directory tsan TESTFLAGS="--filter '$(SANITIZED)'"
	$(MAKE) --no-print-directory asan TESTFLAGS="--filter '$(SANITIZED)'"

tsan: dependencies ## Run the tests under the thread sanitizer
	TSAN_OPTIONS="halt_on_error=1:suppressions=$(CURDIR)/scripts/tsan-suppressions" \
	  $(TEST) --sanitize=thread --scratch-path .build/tsan

# With ld.gold, the default, linking warns of a hundred symbols of the sanitizer. Freed memory is kept from being used again,
# 16 MiB of it: with the 256 MiB of the default no test of a body in constant memory could pass.
asan: dependencies ## Run the tests under the address sanitizer, with the search for leaks
	ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16 \
	  $(TEST) --sanitize=address --scratch-path .build/asan -Xswiftc -use-ld=lld

coverage: dependencies ## Run the tests and print the line coverage of each module
	$(TEST) --enable-code-coverage --scratch-path .build/coverage
	@scripts/coverage-report "$$($(SWIFT) test --show-codecov-path --scratch-path .build/coverage)"

perf-build: build
	@scripts/install-dependencies perf
	$(SWIFT) build -c release --package-path Benchmarks --static-swift-stdlib
	$(BUILD) -c release --product cache-benchmark --static-swift-stdlib
	$(BUILD) -c release --product netopt-benchmark --static-swift-stdlib

perf: perf-build ## Measure every line of the budget against plain libcurl, or AGAINST=COMMIT
	SWIFT="$(SWIFT)" python3 Benchmarks/perf $(if $(AGAINST),against "$(AGAINST)",run) $(PERFFLAGS)

perf-check: perf-build ## Fail when a request costs more than recorded in Benchmarks/thresholds.json
	python3 Benchmarks/perf check

perf-record: perf-build ## Record what a request costs now
	python3 Benchmarks/perf record

libcurl-matrix: dependencies ## Run MATRIX_TESTS on other releases of libcurl: those Debian has the sources of, and LIBCURL_DIRS
	@scripts/install-dependencies libcurl
	$(BUILD) --build-tests
	scripts/libcurl-matrix '$(MATRIX_TESTS)' '$(LIBCURL_RELEASES)' $(LIBCURL_DIRS)

kill-list: dependencies ## Kill a process that replaces lists, 200 times, and look whether there is always a whole one
	KILL_ROUNDS=$(KILL_ROUNDS) $(TEST) --filter ListKillTests

# Only the compiler gets the option for the fuzzer: if the driver linked libFuzzer, it would add a second main. New
# inputs, and inputs that break a rule, are kept below Fuzz/.build.
fuzz-build: dependencies
	@library=$$(echo "$$(dirname "$$(readlink -f "$$(command -v $(SWIFT))")")"/../lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-$$(uname -m).a); \
	if [[ ! -f "$$library" ]]; then echo "this toolchain has no libFuzzer: $$library" >&2; exit 1; fi; \
	$(SWIFT) build -c release --package-path Fuzz -Xswiftc -Xfrontend -Xswiftc -sanitize=fuzzer -Xlinker "$$library"

fuzz: fuzz-build ## Fuzz every parser of netopt's for FUZZ_SECONDS each
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p "Fuzz/.build/corpus/$$target"; \
	  echo "== $$target"; \
	  SWIFT_BACKTRACE=enable=no Fuzz/.build/release/netopt-fuzz "$$target" -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
	    -rss_limit_mb=2048 -max_len=16384 -len_control=100 -print_final_stats=1 -verbosity=0 "-artifact_prefix=Fuzz/.build/$$target-" \
	    "Fuzz/.build/corpus/$$target" "Fuzz/Corpus/$$target"; \
	done
kill-cache: dependencies ## Kill two processes that write to one disk cache, 300 times, and look whether it is whole
	KILL_ROUNDS=$(KILL_CACHE_ROUNDS) $(TEST) --filter CacheKillTests

soak: perf-build ## Perform a million requests and look whether anything grows
	python3 Benchmarks/perf soak

clean: ## Remove what was built
	rm -rf .build Benchmarks/.build Fuzz/.build
