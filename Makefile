# Bonsai: Kubernetes in miniature. `make help` lists the targets.
SHELL := /bin/bash
export CGO_ENABLED := 0
# One set of flags for builds, vet and tests: what one has compiled the others find.
export GOFLAGS := -trimpath
COMPONENTS := kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl kubectl-why kubectl-trace bonsai bonsai-network bonsai-ipam bonsai-traces
LDFLAGS := -s -w -X sigs.k8s.io/kustomize/api/provenance.version=v5.8.1
# What would keep every method of every type in a binary: Go's plug-ins, which kustomize's library links and no static binary can load, and
# the templates of grpc's trace pages.
TAGS := kustomize_disable_go_plugin_support,grpcnotrace
NODES ?= 1
UPFLAGS ?=

.PHONY: help build compose compose-test addons install up down test unit e2e e2e-long e2e-vm e2e-vm-quick soak history invariants ecosystem why console console-test console-shots bench lint lint-quick reference conformance conformance-diff stock-test newversion release release-test upgrade-test
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: tools components images ## build the components, the pinned tools and the local images into bin/

.PHONY: components tools images
components:
	go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ $(COMPONENTS:%=./cmd/%)

tools: bin/etcd bin/coredns
bin/etcd bin/coredns: deploy/tools/go.mod deploy/tools/etcd/main.go deploy/tools/coredns/main.go
	cd deploy/tools && go build -ldflags '$(LDFLAGS)' -o ../../bin/ ./etcd ./coredns && touch ../../bin/etcd ../../bin/coredns

bin/pause: deploy/images/pause/pause.c
	mkdir -p bin && gcc -static -Os -s -o $@ $<

bin/busybox: deploy/images/busybox/build.sh
	deploy/images/busybox/build.sh $@

images: bin/images/.done
bin/images/.done: bin/coredns bin/pause bin/busybox $(wildcard pkg/cluster/image/*.go) pkg/cluster/plan/localimage/names.go
	go build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ ./cmd/bonsai
	bin/bonsai image build bin/images && touch $@

ADDONS ?= metrics-server registry traefik
addons: components $(ADDONS:%=bin/images/%.tar) ## build the add-ons that a cluster does not have by default (bonsai up --addons NAME): ADDONS=NAME
bin/images/metrics-server.tar bin/images/registry.tar bin/images/traefik.tar: bin/images/%.tar: bin/% bin/busybox $(wildcard pkg/cluster/image/*.go) pkg/cluster/plan/localimage/names.go
	bin/bonsai image build bin/images $*

bin/registry: deploy/tools/registry/go.mod
	cd deploy/tools/registry && go build -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/distribution/distribution/v3/cmd/registry && touch ../../../$@

bin/metrics-server: deploy/tools/metrics-server/go.mod
	cd deploy/tools/metrics-server && go build -ldflags '$(LDFLAGS)' -o ../../../$@ sigs.k8s.io/metrics-server/cmd/metrics-server && touch ../../../$@

# Traefik as it is published: 2,400 packages, with the clients of some eighty DNS services.
bin/traefik: deploy/tools/traefik/go.mod
	cd deploy/tools/traefik && go build -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/traefik/traefik/v3/cmd/traefik && touch ../../../$@

install: ## install the Debian packages that a cluster needs (as root)
	deploy/install.sh

up: install build ## start the cluster: make up NODES=3
	bin/bonsai up --nodes $(NODES) $(UPFLAGS)

down: ## stop the cluster and remove everything it made
	@[ ! -x bin/bonsai ] || bin/bonsai down

test: build unit e2e ## all tests; the end-to-end part needs root

# The race detector makes tests slow to link and to run. It sees nothing in the tests below test/, which drive finished
# programs, nor in those packages of the API and of kubectl that have neither goroutines nor locks: SINGLE lists them.
# go vet has run as a part of lint-quick.
CONCURRENT := '"sync(/atomic)?"|^\s+go (func|[a-z])|\bchan\b|errgroup'
SINGLE = { go list ./test/... | grep -v '/test/\(e2e\|compose\|vm\)$$'; go list ./api/... ./pkg/kubectl/... | \
	grep -vxFf <(grep -rlE --include='*.go' $(CONCURRENT) api pkg/kubectl | xargs -n1 dirname | sed 's,^,bonsai/,'); }
unit: tools lint-quick ## unit, contract and architecture tests, where goroutines are with the race detector, and lint-quick
	go test -vet=off -timeout 15m $$($(SINGLE))
	CGO_ENABLED=1 go test -vet=off -race -timeout 15m $$(go list ./... | grep -v '^bonsai/test/' | grep -vxFf <($(SINGLE)))
	go test ./pkg/apiserver -run IdleWatch # stacks, which are larger with the race detector
	cd test/conformance && go test ./...

e2e: build bin/kubectl-1.20 ## end-to-end tests on a real cluster that they start and stop (as root)
	go test -count=1 -timeout 20m -v ./test/e2e
	cd test/ecosystem && go test -count=1 ./operator ./oidc ./konnectivity # on envtest's control plane, needs no root

e2e-long: build addons bin/kubectl-1.20 ## the end-to-end tests with the long ones, on a cluster with all add-ons (as root): run before a change is called done
	go test -count=1 -timeout 40m -v ./test/e2e -long $(E2EFLAGS)

RELEASES ?= bookworm trixie
e2e-vm: build bin/kubectl-1.20 ## the tests on virtual machines of Debian, which they make and start (as root; qemu, debootstrap): RELEASES=trixie VMFLAGS='-run TestDisk'
	VERSION=vm ARCHS=amd64 OUT=dist/vm deploy/release.sh
	failed=0; for r in $(RELEASES); do go test -count=1 -timeout 24h -v ./test/vm -machines -release $$r -archive '$(CURDIR)/dist/vm/bonsai-vm-linux-amd64.tar.gz' -suite '$(CONFORMANCE_DATA)' $(VMFLAGS) || failed=1; done; exit $$failed

e2e-vm-quick: build ## ten minutes of that: a machine boots, gets a cluster and has it again after a reboot
	go test -count=1 -timeout 1h -v ./test/vm -machines -release trixie -run TestQuick $(VMFLAGS)

# Debian's kubectl of 2021 is one of the clients that the end-to-end tests drive; its package conflicts with newer kubectls,
# so that it is only unpacked.
bin/kubectl-1.20:
	d=$$(mktemp -d) && cd $$d && apt-get download -qq kubernetes-client && dpkg-deb -x kubernetes-client_*.deb x && cp x/usr/bin/kubectl $(CURDIR)/$@ && rm -rf $$d

soak: build ## twenty minutes of short pods while components are killed (as root): SOAKFLAGS='-duration 3m -also etcd'
	go build -o bin/soak ./test/soak
	bin/soak -bin bin $(SOAKFLAGS)

history: tools components ## five minutes of writes, watches and lists, checked, while etcd and the API server are killed: HISTORYFLAGS='-kills 4 -duration 8s'
	go test -count=1 -timeout 0 -v -run TestHistory ./test/history -kills 26 -duration 5m $(HISTORYFLAGS)

invariants: tools components ## a hundred seconds of workloads, checked at every revision, while controller managers and schedulers are killed: INVARIANTSFLAGS='-seed 7'
	go test -count=1 -timeout 0 -v -run TestHistories ./test/invariants -duration 100s -seed $$RANDOM $(INVARIANTSFLAGS)

# Helm as it is published. Compiling it takes four minutes of CPU the first time, so it is no part of `make test`.
bin/helm: test/ecosystem/go.mod
	cd test/ecosystem && go build -ldflags '$(LDFLAGS)' -o ../../$@ helm.sh/helm/v4/cmd/helm && touch ../../$@

# Jaeger as it is published, with the clients of all its databases: four minutes of CPU the first time.
bin/jaeger: deploy/tools/jaeger/go.mod
	cd deploy/tools/jaeger && go build -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/jaegertracing/jaeger/cmd/all-in-one && touch ../../../$@

ecosystem: build bin/helm bin/jaeger ## Helm, an operator and dex on clusters that it starts and stops, and Jaeger (as root)
	test/ecosystem/run

console: ## build the page of bonsai console from pkg/console/web (needs Node.js and npm)
	cd pkg/console/web && npm ci --no-audit --no-fund && npm test && npm run build

CONSOLE_TEST = cd test/console && npm ci --no-audit --no-fund && BONSAI='$(CURDIR)/bin/bonsai' KUBECTL='$(CURDIR)/bin/kubectl' KUBECONFIG='$(abspath $(KUBECONFIG))'
console-test: ## the console in Chromium, on a running cluster (needs Node.js, npm, chromium): KUBECONFIG=file
	$(CONSOLE_TEST) npm test

console-shots: ## write the pictures of docs/guides/console.md from a running cluster (needs pngquant, too): KUBECONFIG=file
	$(CONSOLE_TEST) SHOTS='$(CURDIR)/docs/guides/console' npm run shots

why: ## kubectl why asked about every situation of test/why, on a running cluster: KUBECONFIG=file WHYFLAGS='-situation ^pvc- -states'
	go test -count=1 -timeout 2h -parallel 8 -run TestSituations -v ./test/why -kubeconfig '$(abspath $(KUBECONFIG))' $(WHYFLAGS)

compose: build ## lay out what the images of deploy/compose are built of (docs/guides/compose.md)
	deploy/compose/build.sh

compose-test: compose ## the cluster of deploy/compose on a Docker engine that the test starts and stops (as root): COMPOSE=docker-compose
	go test -count=1 -timeout 30m -v ./test/compose

bench: build ## the figures of the README; PEER_BIN=<dir> measures another Kubernetes beside ours
	go run ./test/bench -bin bin $(if $(PEER_BIN),-peer $(PEER_BIN))

release: ## archives for amd64 and arm64 with checksums, in dist/: VERSION=name ARCHS=amd64 ADDONS=metrics-server
	deploy/release.sh

release-test: ## unpack the archives in dist/ and try what runs on this machine
	deploy/release-test.sh

upgrade-test: build ## a cluster of PREVIOUS=dir, the binaries of a Bonsai of the Kubernetes before, becomes ours (as root)
	cd test/upgrade && go test -count=1 -v -timeout 20m . -args -previous '$(abspath $(PREVIOUS))'

# Kubernetes' own suite: what is built for it once is kept in CONFORMANCE_DATA.
CONFORMANCE_DATA ?= /var/lib/bonsai-conformance
KUBECTL ?= ours
conformance: build ## Kubernetes' conformance suite (as root): FOCUS='regexp' KUBECTL=ours|upstream
	cd test/conformance && go build -o ../../bin/conformance .
	bin/conformance run -data '$(CONFORMANCE_DATA)' -kubectl '$(KUBECTL)' $(if $(FOCUS),-focus '$(FOCUS)') $(CONFORMANCEFLAGS)

conformance-diff: ## compare two result files: OLD=file (default: the committed one) NEW=file
	cd test/conformance && go build -o ../../bin/conformance .
	$(if $(OLD),,git show HEAD:test/conformance/RESULTS.md >bin/RESULTS.old.md)
	bin/conformance diff $(or $(OLD),bin/RESULTS.old.md) $(or $(NEW),test/conformance/RESULTS.md)

stock-test: build ## each component beside the real ones of STOCK=dir, after `make conformance` (as root): CASES='stock-kubelet our-kubelet'
	cd test/conformance && go build -o ../../bin/conformance .
	CONFORMANCE_DATA='$(CONFORMANCE_DATA)' CONFORMANCEFLAGS='$(CONFORMANCEFLAGS)' test/stock/run '$(STOCK)' $(CASES)

newversion: ## what is new in a release of Kubernetes, as a list of what to do: VERSION=v1.37.2 BINARIES=dir METRICS=file
	@go run ./test/newversion -version '$(VERSION)' $(if $(FROM),-from '$(FROM)') $(if $(BINARIES),-binaries '$(BINARIES)') $(if $(METRICS),-metrics '$(METRICS)') $(if $(METRICS_FROM),-metrics-from '$(METRICS_FROM)') $(if $(MOST),-most '$(MOST)')

bin/misspell bin/staticcheck: deploy/tools/lint/go.mod
	cd deploy/tools/lint && go build -o ../../../$@ "$$(go list tool | grep '/$(@F)$$')" && touch ../../../$@

reference: ## write the pages of docs/reference that are out of date
	go test ./cmd/bonsai ./cmd/bonsai-network ./cmd/bonsai-traces ./cmd/kubectl-why ./cmd/kubectl-trace ./cmd/internal/daemon ./cmd/kube-apiserver ./cmd/kube-controller-manager \
		./cmd/kube-scheduler ./cmd/kubelet ./cmd/kube-proxy ./pkg/apiserver ./pkg/apiserver/fairness \
		./pkg/apiserver/authn/serviceaccount/externaljwt ./pkg/apiserver/egress/selector \
		./pkg/apiserver/storage/encryption ./pkg/cluster/plan/clusterfile ./pkg/health \
		./pkg/kubectl ./pkg/kubelet ./pkg/kubelet/cadvisor ./pkg/kubelet/server -run TestReference -args -update

lint: lint-quick bin/staticcheck ## lint-quick and staticcheck (staticcheck.conf)
	bin/staticcheck ./...

# What is cheap beside the tests.
lint-quick: bin/misspell ## gofmt, go vet and the spelling of all files
	@test -z "$$(gofmt -l cmd pkg api deploy test)" || { gofmt -l cmd pkg api deploy test; exit 1; }
	go vet ./...
	git ls-files -z | xargs -0 bin/misspell -error -i creater # a Creater creates (pkg/apiserver/registry)
