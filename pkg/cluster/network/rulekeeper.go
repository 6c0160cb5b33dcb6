package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// RuleKeeper keeps what Make has set on the host for packets: the rules, and that the host forwards. Others flush all
// rules of a machine (`nft flush ruleset`, the unit nftables.service), set FORWARD to DROP (a Docker that starts
// later), or set all sysctls again. Without the rules, neighbours would reach the cluster, and nobody the API server by
// loopback.
type RuleKeeper struct {
	c plan.Config

	mu     sync.Mutex   // one writer at a time; guards joined
	joined []netip.Addr // the machines that admit let in last
}

// NewRuleKeeper returns a keeper of the rules that Make makes for the cluster.
func NewRuleKeeper(c plan.Config) *RuleKeeper { return &RuleKeeper{c: c} }

const (
	// checkEvery is the time between two looks without an event: iptables-legacy and sysctls tell nobody of a change.
	checkEvery = 30 * time.Second
	// settle is how long a change is left alone: a flush may be the first half of a reload, and on a joined machine
	// kube-proxy writes rules, too.
	settle = time.Second
)

// Keep restores what is missing, soon after each change of the host's nftables and every half minute, until ctx ends.
//
// The supervisor runs it on a goroutine of its own, for as long as the network stands.
func (k *RuleKeeper) Keep(ctx context.Context, log *slog.Logger) {
	changed := make(chan struct{}, 1)
	follow, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)})
	if err != nil {
		log.Warn("cannot follow the host's packet rules, and looks every half minute", "err", err)
	} else {
		defer context.AfterFunc(ctx, func() { _ = follow.Close() })()
		go func() { // until follow is closed
			for {
				// ENOBUFS says that there were too many events to keep. After any other error there are no more: the
				// socket is closed, or broken, and the looks every half minute remain.
				if _, err := follow.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) {
					return
				}
				select {
				case changed <- struct{}{}:
				default: // a look is due already
				}
			}
		}()
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-changed:
			select {
			case <-time.After(settle):
			case <-ctx.Done():
				return
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch missing, err := k.restore(ctx); {
		case err != nil && ctx.Err() == nil:
			log.Error("cannot restore the host's packet rules", "missing", missing, "err", err)
		case missing != "" && err == nil:
			log.Warn("somebody removed what the cluster needs on the host; it is restored", "missing", missing)
		}
	}
}

// restore sets again what is missing of what Make has set, and returns what that was.
func (k *RuleKeeper) restore(ctx context.Context) (missing string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, part := range []struct {
		what    string
		restore func(context.Context) (was bool, err error)
	}{
		{"the tables " + k.c.Mark() + " of nftables", k.restoreTables},
		{"the rules of the chain FORWARD", k.restoreForward},
		{"the rules of the chain INPUT", k.restoreInput},
		{"the setting net.ipv4.ip_forward", k.restoreForwarding},
	} {
		was, failed := part.restore(ctx)
		if was {
			all = append(all, part.what)
		}
		err = errors.Join(err, failed)
	}
	return strings.Join(all, ", "), err
}

func (k *RuleKeeper) restoreTables(ctx context.Context) (missing bool, err error) {
	found, err := exec.CommandContext(ctx, "nft", "list", "tables").Output()
	if err != nil {
		return false, fmt.Errorf("list the tables of nftables: %w", err)
	}
	text, begin := packetRules(k.c), ""
	for _, family := range [...]string{"ip", "ip6"} {
		name := "table " + family + " " + k.c.Mark()
		wanted := strings.Contains(text, name+" {")
		has := slices.Contains(strings.Split(string(found), "\n"), name)
		missing = missing || wanted && !has
		if has { // loaded a second time, its rules would be there twice
			begin += "delete " + name + "\n"
		}
	}
	if !missing {
		return false, nil
	}
	return true, host.NFT(ctx, begin+text+k.admission())
}

func (k *RuleKeeper) restoreForward(ctx context.Context) (missing bool, err error) {
	link := k.c.Mark()
	if k.c.Joined != nil {
		link = plan.PodBridge
	}
	before := host.ForwardChain(ctx)
	if k.c.Joined == nil && !forwards(k.c) || strings.Contains(before, link) {
		return false, nil
	}
	err = host.OpenForward(ctx, link, k.c.IsJoinable() || k.c.Joined != nil)
	return host.ForwardChain(ctx) != before, err
}

func (k *RuleKeeper) restoreInput(ctx context.Context) (missing bool, err error) {
	if k.c.Joined != nil {
		return false, nil
	}
	return host.OpenInput(ctx, k.c.Mark(), services(k.c))
}

func (k *RuleKeeper) restoreForwarding(context.Context) (missing bool, err error) {
	if k.c.Joined != nil || !forwards(k.c) { // the CNI plug-ins of a joined machine switch it on with each pod
		return false, nil
	}
	f, err := host.IPv4Forwarding()
	if err != nil {
		return false, err
	}
	return f.Restore()
}

// admit lets these machines into the node network, and no others. nft applies the script as a whole, so that none of
// them is shut out in between. If it fails, the set keeps its earlier content, and FollowNodes tries again at its next
// event.
func (k *RuleKeeper) admit(ctx context.Context, machines []netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.joined = machines
	return host.NFT(ctx, fmt.Sprintf("flush set ip %s %s\n", k.c.Mark(), joinedSet)+k.admission())
}

// admission returns the script that adds the joined machines to their set.
func (k *RuleKeeper) admission() string {
	script := ""
	for _, a := range k.joined {
		script += fmt.Sprintf("add element ip %s %s { %s }\n", k.c.Mark(), joinedSet, a)
	}
	return script
}
