package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/net"

	"bonsai/cmd/internal/daemon"
)

// options are the values of all flags.
type options struct {
	logging daemon.Logging

	// Storage
	etcdServers                       []string
	etcdCA, etcdCert, etcdKey         string
	etcdPrefix                        string
	etcdCompaction, etcdHealthTimeout time.Duration
	eventTTL                          time.Duration

	// Serving
	bindAddress, advertiseAddress string
	securePort                    int
	tlsCert, tlsKey, certDir      string
	tlsMinVersion                 string
	tlsCipherSuites               []string
	maxReading, maxMutating       int
	requestTimeout                time.Duration
	minRequestTimeout             int
	shutdownDelay                 time.Duration
	goAwayChance                  float64
	profiling                     bool
	http2Streams                  int

	// Authentication
	clientCA, tokenFile                     string
	anonymous                               bool
	issuers, accountKeys, audiences         []string
	allowPrivileged                         bool
	signingKey, jwksURI                     string
	accountLookup, extendTokens             bool
	maxTokenExpiration                      time.Duration
	requestHeaderCA                         string
	requestHeaderNames, requestHeaderUsers  []string
	requestHeaderUIDs                       []string
	requestHeaderGroups, requestHeaderExtra []string

	// Authorization and admission
	authorizationModes                []string
	enableAdmission, disableAdmission []string

	// Services
	serviceRanges string
	nodePorts     net.PortRange

	// Kubelets and aggregation
	kubeletCert, kubeletKey, kubeletCA string
	kubeletAddressTypes                []string
}

// defaults are upstream's.
func defaults() *options {
	return &options{
		etcdPrefix: "/registry", etcdCompaction: 5 * time.Minute, etcdHealthTimeout: 2 * time.Second, eventTTL: time.Hour,
		bindAddress: "0.0.0.0", securePort: 6443, certDir: "/var/run/kubernetes", maxReading: 400, maxMutating: 200,
		requestTimeout: time.Minute, minRequestTimeout: 1800, profiling: true,
		anonymous: true, accountLookup: true, extendTokens: true,
		authorizationModes: []string{"AlwaysAllow"},
		serviceRanges:      "10.0.0.0/24", nodePorts: net.PortRange{Base: 30000, Size: 2768},
		kubeletAddressTypes: []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"},
		requestHeaderUsers:  []string{"x-remote-user"}, requestHeaderUIDs: []string{"x-remote-uid"},
		requestHeaderGroups: []string{"x-remote-group"}, requestHeaderExtra: []string{"x-remote-extra-"},
	}
}

// validate reports everything that is wrong with the flags at once.
func (o *options) validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(len(o.etcdServers) > 0, "--etcd-servers must be specified")
	need(o.securePort >= 1 && o.securePort <= 65535, "--secure-port %v must be between 1 and 65535, inclusive. It cannot be turned off with 0", o.securePort)
	need(len(o.issuers) > 0, "--service-account-issuer is a required flag")
	need(o.signingKey != "", "--service-account-signing-key-file is a required flag")
	need((o.tlsCert == "") == (o.tlsKey == ""), "--tls-cert-file and --tls-private-key-file must be given together")
	need((o.etcdCert == "") == (o.etcdKey == ""), "--etcd-certfile and --etcd-keyfile must be given together")
	need((o.kubeletCert == "") == (o.kubeletKey == ""), "--kubelet-client-certificate and --kubelet-client-key must be given together")
	need(o.maxReading >= 0, "--max-requests-inflight can not be negative value")
	need(o.maxMutating >= 0, "--max-mutating-requests-inflight can not be negative value")
	need(o.requestTimeout > 0, "--request-timeout can not be negative value")
	need(o.goAwayChance >= 0 && o.goAwayChance <= 0.02, "--goaway-chance can not be less than 0 or greater than 0.02")
	need(o.maxTokenExpiration == 0 || o.maxTokenExpiration >= time.Hour && o.maxTokenExpiration <= 1<<32*time.Second,
		"the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
	need(len(o.authorizationModes) > 0, "at least one authorization-mode must be passed")
	for _, m := range o.authorizationModes {
		need(slices.Contains(authorizationModes, m), "--authorization-mode: %q is not a valid mode", m)
	}
	if _, err := netip.ParseAddr(o.bindAddress); err != nil {
		errs = append(errs, fmt.Errorf("--bind-address: %w", err))
	}
	if o.advertiseAddress != "" {
		if _, err := netip.ParseAddr(o.advertiseAddress); err != nil {
			errs = append(errs, fmt.Errorf("--advertise-address: %w", err))
		}
	}
	if _, err := o.serviceRange(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.validateAdmission())
	return errors.Join(errs...)
}

// authorizationModes are the values of --authorization-mode.
var authorizationModes = []string{"AlwaysAllow", "AlwaysDeny", "Node", "RBAC"}

// serviceRange is the first of the ranges; only one family is served.
func (o *options) serviceRange() (netip.Prefix, error) {
	first, _, _ := strings.Cut(o.serviceRanges, ",")
	p, err := netip.ParsePrefix(first)
	if err != nil {
		return p, fmt.Errorf("--service-cluster-ip-range: %w", err)
	}
	return p.Masked(), nil
}
