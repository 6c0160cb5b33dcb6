package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/networking"
	"bonsai/pkg/boundedfrequency"
	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/policy"
)

// Rounds of policies follow changes closely: until its round a pod's new label lets nobody in, and a policy keeps
// nobody out.
const (
	policySettle    = 5 * time.Millisecond
	policyMinPeriod = 50 * time.Millisecond
)

// networkPolicies returns the work that enforces NetworkPolicies on the pods of a node, which have addresses of own.
func networkPolicies(client *apiclient.Client, node string, own func() []netip.Prefix, tables []*nft.PolicyTable,
	log *slog.Logger) []func(context.Context) error {
	state := policy.NewState(node, own)
	rounds := boundedfrequency.Runner{Settle: policySettle, MinPeriod: policyMinPeriod, Resync: resync, Log: log}
	// Without a policy nothing need be known of pods and namespaces.
	needed := func(f func(context.Context)) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-state.Needed():
				f(ctx)
			}
			return ctx.Err()
		}
	}
	return []func(context.Context) error{
		func(ctx context.Context) error {
			source(networking.NetworkPolicies(client), state.Policies(), log)(ctx)
			return ctx.Err()
		},
		needed(source(core.Pods(client), state.Pods(), log)),
		needed(source(core.Namespaces(client), state.Namespaces(), log)),
		func(ctx context.Context) error {
			return rounds.Run(ctx, state, func(ctx context.Context) error { return enforce(ctx, state, tables, log) })
		},
	}
}

// policyTables are the tables of the cluster's families.
func (s *settings) policyTables(log *slog.Logger) ([]*nft.PolicyTable, error) {
	four, err := nft.OpenPolicyTable(false, log)
	if err != nil || !slices.ContainsFunc(s.clusterCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		return []*nft.PolicyTable{four}, err
	}
	six, err := nft.OpenPolicyTable(true, log)
	return []*nft.PolicyTable{four, six}, err
}

// enforce is one round. A table that could not be written keeps what it was told for the next one.
func enforce(ctx context.Context, state *policy.State, tables []*nft.PolicyTable, log *slog.Logger) error {
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
