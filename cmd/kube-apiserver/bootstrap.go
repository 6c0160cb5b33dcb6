package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/pkg/apiserver/bootstrap"
	"bonsai/pkg/health"
)

// newBootstrap says what an empty cluster starts with.
func newBootstrap(o *options, s *stores, who *authentication, policy *bootstrap.Policy, log *slog.Logger) (*bootstrap.Bootstrap, error) {
	cfg := bootstrap.Config{Stores: s, Log: log}
	if slices.Contains(o.authorizationModes, "RBAC") {
		cfg.Policy = policy
	}
	serviceRange, err := o.serviceRange()
	if err != nil {
		return nil, err
	}
	cfg.Service = &bootstrap.ServiceConfig{ClusterIP: bootstrap.FirstAddress(serviceRange), Advertise: o.advertised(), Port: int32(o.securePort)}
	if cfg.Authentication, err = authenticationSettings(o, who); err != nil {
		return nil, err
	}
	return bootstrap.New(cfg), nil
}

// advertised is the address that pods and other servers reach this one at: the flag's, the bound one, or the host's own.
func (o *options) advertised() netip.Addr {
	for _, s := range []string{o.advertiseAddress, o.bindAddress} {
		if a, err := netip.ParseAddr(s); err == nil && !a.IsUnspecified() {
			return a
		}
	}
	if ip, err := utilnet.ResolveBindAddress(net.ParseIP(o.bindAddress)); err == nil {
		if a, ok := netip.AddrFromSlice(ip); ok {
			return a.Unmap()
		}
	}
	return netip.IPv4Unspecified()
}

// authenticationSettings are published for servers behind this one.
func authenticationSettings(o *options, who *authentication) (*bootstrap.Authentication, error) {
	a := &bootstrap.Authentication{}
	if o.clientCA != "" {
		pem, err := os.ReadFile(o.clientCA)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		a.ClientCA = string(pem)
	}
	if who.proxyCA == nil {
		return a, nil
	}
	pem, err := os.ReadFile(o.requestHeaderCA)
	if err != nil {
		return nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	a.RequestHeaderCA = string(pem)
	a.AllowedNames, a.UsernameHeaders, a.UIDHeaders = o.requestHeaderNames, o.requestHeaderUsers, o.requestHeaderUIDs
	a.GroupHeaders, a.ExtraHeaderPrefixes = o.requestHeaderGroups, o.requestHeaderExtra
	return a, nil
}

// bootstrapChecks fail until what an empty cluster starts with is stored, each for its part, and the authorizer has heard of the
// default roles and bindings: before that, components that start with the server would be refused.
func bootstrapChecks(boot *bootstrap.Bootstrap, policy *bootstrap.Policy, may *authorization) []health.Check {
	var known atomic.Bool
	var checks []health.Check
	for _, p := range boot.Parts() {
		checks = append(checks, health.Check{Name: "poststarthook/" + p.Name, Run: func(*http.Request) error {
			if !p.Made() {
				return errors.New("not stored yet")
			}
			if p.Name != bootstrap.PartRoles || known.Load() {
				return nil
			}
			for role, binding := range policy.Names {
				if !may.rbac.Knows(role, binding) {
					return fmt.Errorf("the authorizer does not know %s%s yet", role, binding)
				}
			}
			known.Store(true)
			return nil
		}})
	}
	return checks
}
