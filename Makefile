# Every target works as root and not, on a machine with git, make and Go; what
# else is needed (MySQL, MariaDB, Kafka, Java) test/servers brings into the
# user's cache.
GO      ?= go
TIMEOUT ?= 40m
FUZZTIME ?= 30s
JAVA    ?= java
TOOLS   := $(CURDIR)/.cache/tools

CHAOS_TIME ?= 10m
CHAOS_SEED ?= 0

.PHONY: swap java-regex rules ui-test help build demo test fast race e2e parity parity-compare chaos chaos-slice mutants bench-failover lint fuzz bench microbench benchcmp generate

help: ## show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | while IFS='	' read -r t d; do printf '  %-15s %s\n' "$$t" "$$d"; done

build: ## build bin/binlog-outbox
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/binlog-outbox ./cmd/binlog-outbox

demo: ## real MySQL and Kafka, a small shop, the connector, a kill -9 half-way, and the count
	$(GO) run ./test/demo

test: lint fast race e2e chaos-slice parity-compare rules ## everything, as CI runs it

fast: ## vet and the tests that need no servers: what each commit must pass
	$(GO) vet ./...
	BINLOG_OUTBOX_TEST_SERVERS=none $(GO) test -timeout $(TIMEOUT) -parallel 8 $$($(GO) list ./... | grep -v /test/) ./test/bench

race: ## the packages with goroutines under the race detector, with their real servers
	GORACE="suppressions=$(CURDIR)/test/race-suppressions" $(GO) test -race -short -parallel 8 -timeout $(TIMEOUT) ./admin ./canal/... ./connector/... ./ha/... ./kafka/... ./node/...

e2e: SHELL := /bin/bash
e2e: .SHELLFLAGS := -o pipefail -c
e2e: ## real processes and real servers, one check for each promise
	$(GO) test -timeout $(TIMEOUT) ./test/servers/... ./schema/ddl
	$(GO) test -timeout $(TIMEOUT) -v -count=1 ./test/e2e/... 2>&1 | grep -vE '^=== (RUN|PAUSE|CONT)'

chaos: ## three nodes, real servers, ten minutes of faults, every promise checked
	$(GO) run ./test/chaos/cmd -time $(CHAOS_TIME) -seed $(CHAOS_SEED) -sources 2

chaos-slice: ## what make test runs of it
	$(GO) test -timeout $(TIMEOUT) -count=1 ./test/chaos/...

mutants: ## the product with one rule broken, again and again: do the tests notice?
	$(GO) run ./test/chaos/mutants

bench-failover: ## how long a consumer waits for the next leader, by phase
	$(GO) run ./test/chaos/cmd failover -times 20

parity: ## run the corpus through the real Debezium afresh and compare with what is stored
	$(GO) run ./test/parity/record

parity-compare: ## run the corpus through this program and compare with what Debezium sent
	$(GO) test -timeout $(TIMEOUT) -count=1 ./test/parity/...

swap: ## stop the real Debezium 30 times of each kind, go on from its offset, and count
	$(GO) test -timeout $(TIMEOUT) -count=1 -v ./test/parity/swap -run TestSwap -rounds 30

java-regex: ## ask this machine's Java 17 afresh what its regular expressions do, and record it
	$(GO) test -timeout $(TIMEOUT) -count=1 -v ./javaregex -run AsJava -java $(JAVA) -write

rules: ## promtool checks the alerts, their tests and the dashboard's queries
	$(GO) test -timeout $(TIMEOUT) -count=1 ./test/rules

ui-test: ## the page /ui in a real Chromium: what it shows, clicks, accessibility; pictures in bin/ui
	mkdir -p bin/ui
	$(GO) test -timeout $(TIMEOUT) -count=1 -artifacts -outputdir $(CURDIR)/bin/ui ./test/ui

lint: ## golangci-lint with the project's rules
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...

fuzz: ## each fuzz target for FUZZTIME
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done; done

bench: ## beside the real Debezium, 25 minutes, written to docs/benchmarks.md; with QUICK=1 a short form of 5
	$(GO) run ./test/bench $(if $(QUICK),-quick,-out docs/benchmarks.md)

microbench: ## the benchmarks of the stages
	$(GO) test -run '^$$' -bench . -benchmem ./canal ./router ./converter ./position ./kafka ./ha

benchcmp: ## the benchmarks of the stages of this tree beside those of commit BASE, where their name matches PATTERN
	GO=$(GO) TOOLS=$(TOOLS) test/bench/benchcmp $(or $(BASE),HEAD) $(or $(PATTERN),.)

generate: ## docs that are made from the code
	$(GO) generate ./...
