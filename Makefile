# One host, two commands: "make run" to use it, "make test" to change it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOBUILD := CGO_ENABLED=0 go build -trimpath -tags embedlib -ldflags "-s -w -X main.version=$(VERSION)"
# Where "make run" and the benchmarks find what was fetched.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ieg
CHAT := $(CACHE)/models/SmolLM2-135M-Instruct.Q4_1.gguf
EMBEDDING := $(CACHE)/models/all-MiniLM-L6-v2.gguf

ARGS ?=
TRACE ?=
PREFIX ?= /usr/local
FUZZTIME ?= 20s
TESTFLAGS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z%_-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## --- use

.PHONY: build
build: ## bin/ieg, with the CPU engine inside (fetched on first use)
	@scripts/need.sh build
	@scripts/engine.sh embed >/dev/null
	$(GOBUILD) -o bin/ieg ./cmd/ieg

.PHONY: run
run: ## build, fetch the models on first use, serve (ARGS="--listen …" adds flags)
	@scripts/need.sh run
	@$(MAKE) --no-print-directory build models
	exec bin/ieg up --model $(CHAT) --model $(EMBEDDING) $(ARGS)

.PHONY: install
install: build ## the binary and the systemd unit below PREFIX (/usr/local)
	install -D -m 755 bin/ieg $(DESTDIR)$(PREFIX)/bin/ieg
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local/bin/ieg|$(PREFIX)/bin/ieg|' deploy/ieg.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/ieg.service

## --- fetch: each once, pinned and verified, into the user's cache

.PHONY: engine
engine: ## the CPU engine's libraries
	@scripts/engine.sh

.PHONY: vulkan
vulkan: ## the Vulkan build of the engine, and Debian's drivers when root
	@scripts/vulkan.sh

.PHONY: models
models: ## the chat model and the embedding model (180 MB)
	@scripts/models.sh

.PHONY: models-all
models-all: ## and a second chat model (230 MB more; Gemma's terms of use)
	@scripts/models.sh all

.PHONY: peers
peers: ## build llama-server and llama-bench for comparison (once, 12 minutes)
	@scripts/peers.sh

## --- change

.PHONY: test
test: ## format, vet, tests with the race detector, all tests with the real engine
	@scripts/test.sh $(TESTFLAGS)

.PHONY: test-clients
test-clients: build models ## the openai clients for Python and Node against bin/ieg
	@scripts/clients.sh

.PHONY: test-kv-events
test-kv-events: build ## a consumer of vLLM's KV events (libzmq, msgspec) against bin/ieg
	@scripts/kv-events.sh

.PHONY: test-vulkan
test-vulkan: build vulkan ## the engine's suite on a Vulkan device, the software driver's if there is no GPU
	@scripts/test-vulkan.sh

.PHONY: lint
lint: ## vet and staticcheck
	go vet ./...
	go tool staticcheck ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: golden
golden: ## rewrite the golden scripts; read the diff before committing it
	@scripts/golden.sh

.PHONY: bench bench-full soak
bench: bench-ready ## every row of the benchmark against its bound (≤ 45 minutes)
	$(BENCH)

bench-full: bench-ready ## the large forms
	$(BENCH) --full

crash: ## kill -9 a process that writes KV to disk, 200 times, and prove every block
	CGO_ENABLED=0 go test ./memory/tier/nvme -run TestCrash -count=1 -v -timeout 15m -crash-rounds 200

soak: bench-ready ## 10 minutes of clients, cancels, bad bodies and engine kills
	$(BENCH) --soak

.PHONY: bench-kv-day
bench-kv-day: bench-ready ## recorded sessions and which tier had their KV (TRACE=FILE, gzipped JSON lines)
	$(BENCH) --kv-day --trace "$(TRACE)"

bench-%: bench-ready ## one row or group, as in "make bench-decode"
	$(BENCH) --row $*

.PHONY: bench-ready
bench-ready: build models peers
	@scripts/engine.sh peer >/dev/null

BENCH = IEG_MODEL=$(CHAT) IEG_LIB=$$(scripts/engine.sh peer) bin/ieg bench $(ARGS)

.PHONY: clean
clean: ## what was built here; the cache stays
	rm -rf bin bench/results bench/results.json devices/engine/lib/cpu.tar.gz devices/engine/lib/MANIFEST
