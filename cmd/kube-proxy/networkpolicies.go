package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/networking"
	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/networkpolicy"
	"bonsai/pkg/proxy/nft"
)

// Rounds of policies follow changes closely: until its round a pod's new label lets nobody in, and a policy keeps nobody out.
const (
	policySettle    = 5 * time.Millisecond
	policyMinPeriod = 50 * time.Millisecond
)

// networkPolicies returns the work that enforces NetworkPolicies. Without --enforce-network-policies there is none, and what an earlier
// proxy enforced goes.
func (s *settings) networkPolicies(ctx context.Context, client *apiclient.Client, services *proxy.State, log *slog.Logger) ([]func(context.Context) error, error) {
	if !s.policies {
		if err := nft.RemovePolicies(ctx); err != nil {
			log.Warn("Could not look for the rules of an earlier proxy", "err", err)
		}
		return nil, nil
	}
	tables, err := s.policyTables(log)
	if err != nil {
		return nil, err
	}
	warnOfBridges(log)
	state := networkpolicy.NewState(s.node, services.PodCIDRs)
	pace := proxy.Pace{Settle: policySettle, MinPeriod: policyMinPeriod, Resync: s.resync, Log: log}
	follow := func(f func(context.Context), when <-chan struct{}) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-when:
				f(ctx)
			}
			return ctx.Err()
		}
	}
	always := make(chan struct{})
	close(always)
	return []func(context.Context) error{
		follow(source(networking.NetworkPolicies(client), "", state.Policies(), log), always),
		follow(source(core.Pods(client), "", state.Pods(), log), state.Needed()),
		follow(source(core.Namespaces(client), "", state.Namespaces(), log), state.Needed()),
		func(ctx context.Context) error {
			return pace.Run(ctx, state, func(ctx context.Context) error { return enforce(ctx, state, tables, log) })
		},
	}, nil
}

// policyTables are the tables of the cluster's families.
func (s *settings) policyTables(log *slog.Logger) ([]*nft.PolicyTable, error) {
	four, err := nft.OpenPolicyTable(false, log)
	if err != nil || !s.six() {
		return []*nft.PolicyTable{four}, err
	}
	six, err := nft.OpenPolicyTable(true, log)
	return []*nft.PolicyTable{four, six}, err
}

// enforce is one round. A table that could not be written keeps what it was told for the next one.
func enforce(ctx context.Context, state *networkpolicy.State, tables []*nft.PolicyTable, log *slog.Logger) error {
	u := state.Take()
	if u.Left > 0 {
		log.Warn("NetworkPolicies select too many pods; some are left out of what is allowed", "left", u.Left)
	}
	var errs []error
	for _, t := range tables {
		errs = append(errs, t.Apply(ctx, u))
	}
	return errors.Join(errs...)
}

// warnOfBridges says so if packets between pods on one bridge do not pass the packet filter.
func warnOfBridges(log *slog.Logger) {
	const path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	text, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(text)) != "1" {
		err = fmt.Errorf("%s is %s", path, strings.TrimSpace(string(text)))
	}
	if err != nil {
		log.Warn("NetworkPolicies do not hold between pods of this node if they share a bridge: load br_netfilter and set its sysctl to 1", "err", err)
	}
}
