# Every target works offline once the module cache is filled (go mod download).

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
MODULE  := github.com/switchyard-plugins/switchyard
LDFLAGS := -s -w -X $(MODULE)/commands.version=$(VERSION) -X $(MODULE)/commands.commit=$(COMMIT) -X '$(MODULE)/verify.build=$(VERSION) $(COMMIT)'
TAGS    := urfave_cli_no_docs
WORKER  := ./verify/worker/switchyard-verify
FUZZTIME ?= 10s
FUZZJOBS ?= 2
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

export CGO_ENABLED ?= 0

.PHONY: all build switchyard install demo test test-race vet staticcheck cross fuzz bench tidy-check check clean

all: build

GOBUILD = go build -trimpath -tags=$(TAGS) -ldflags="$(LDFLAGS)"

## build: both programs, as ./switchyard and ./switchyard-verify
build: switchyard
	$(GOBUILD) -o switchyard-verify $(WORKER)

## switchyard: the program alone; what checks signatures is the other one
switchyard:
	$(GOBUILD) -o switchyard .

## install: both programs, into the Go bin directory
install:
	go install -trimpath -tags=$(TAGS) -ldflags="$(LDFLAGS)" . $(WORKER)

## demo: the whole life of a real plugin package, in a throw-away data directory
demo: switchyard
	./docs/demo.sh

## test: every test
test:
	go test ./...

## test-race: every test under the race detector (needs a C compiler)
test-race:
	CGO_ENABLED=1 go test -race ./...

vet:
	go vet ./...
	files=$$(git ls-files '*.go') && test -n "$$files" && gofmt -l $$files | (! grep .)

staticcheck:
	go run $(STATICCHECK) ./...

## cross: compiles for every platform that the product names; the verify worker, whose
## libraries take minutes, once for each other system. Nothing of it runs, so it need not
## be fast: without inlining the compiler takes a quarter less, except for this system, whose
## packages the tests need
cross:
	@for os in linux darwin windows; do for arch in amd64 arm64; do \
		echo "GOOS=$$os GOARCH=$$arch"; \
		flags=-gcflags=all=-l; test $$os/$$arch != $$(go env GOHOSTOS)/$$(go env GOHOSTARCH) || flags=; \
		GOOS=$$os GOARCH=$$arch go build $$flags $$(GOOS=$$os GOARCH=$$arch go list -e -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v /verify/worker) || exit 1; done; done
	@for target in darwin/arm64 windows/amd64; do \
		echo "GOOS=$${target%/*} GOARCH=$${target#*/} (verify worker)"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} go build -gcflags=all=-l -o /dev/null $(WORKER) || exit 1; done

## fuzz: every fuzz target for FUZZTIME, FUZZJOBS at a time, each on one processor
fuzz:
	@programs=$$(mktemp -d) && trap 'rm -rf "$$programs"' EXIT && \
	git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u | while read -r dir; do \
		program="$$programs/$$(echo "$$dir" | tr / .)" && \
		go test -c -fuzz . -o "$$program" "./$$dir" </dev/null || exit 1; \
		(cd "$$dir" && "$$program" -test.list '^Fuzz' </dev/null) | sed "s|^|$$dir $$program |"; \
	done >"$$programs/targets" && \
	xargs -r -P $(FUZZJOBS) -L 1 .ci/fuzz $(FUZZTIME) <"$$programs/targets"

## bench: the ratios of docs/performance.md
bench:
	cd runtime/bench && go run . $(BENCHFLAGS)

tidy-check:
	go mod tidy -diff
	cd runtime/bench && go mod tidy -diff

## check: what a change must pass before it is pushed
check: vet staticcheck tidy-check test cross

clean:
	rm -f switchyard
