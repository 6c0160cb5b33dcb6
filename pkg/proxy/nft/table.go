// Package nft writes a node's service rules into the kernel with nftables: a table called kube-proxy per IP family,
// changed in one transaction per round, and only where something changed.
package nft

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/nftables"
	"bonsai/pkg/proxy"
)

// Config is the same for both families.
type Config struct {
	// ClusterCIDRs are the pods' addresses; traffic to a cluster IP from elsewhere is masqueraded. Empty: none is.
	ClusterCIDRs []netip.Prefix
	// PodInterface, unless empty, tells the node's pods by the interface that their packets come through, in place of
	// their addresses. A * at its end stands for anything.
	PodInterface string
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll bool
	// MasqueradeMark is the bit of a packet's mark that says it is to be masqueraded; 0: 0x4000.
	MasqueradeMark uint32
	// NodePortAddresses limits node ports to the node's addresses in these ranges. Empty: the node's primary addresses.
	NodePortAddresses []netip.Prefix
	// Primary lets node ports have the node's primary addresses beside the ranges.
	Primary bool
	// Interfaces lists the machine's addresses; needed with NodePortAddresses.
	Interfaces func() ([]netip.Addr, error)
	// Wrote hears of each round, which Now measures; both or none are set.
	Wrote func(Round)
	Now   func() time.Time
}

// Round is what a round did.
type Round struct {
	// Full is set if the whole table was written.
	Six, Full bool
	Took      time.Duration
}

// Table is the table of one family. Apply must not be called concurrently.
type Table struct {
	config Config
	rules  *nftables.Ledger[proxy.Name]
}

// New returns the table of family 4 or 6, using nft. Nothing is written before the first Apply.
func New(nft knftables.Interface, six bool, config Config, log *slog.Logger) *Table {
	return &Table{config: config, rules: nftables.NewLedger(nftables.LedgerConfig[proxy.Name]{
		Tool: nft, Family: nftables.Family(six), Table: tableName, Whose: "rules for kube-proxy", Entrance: entrance,
		Compare: compareNames, Log: log,
		Conflict: func(service, owner proxy.Name, key string) {
			log.Warn("A service claims an address and port that another one has", "service", service, "owner", owner,
				"key", key)
		},
	})}
}

func compareNames(a, b proxy.Name) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Open returns the table with the system's nft tool. It fails where that is missing or the process may not use it.
func Open(six bool, config Config, log *slog.Logger) (*Table, error) {
	tool, err := nftables.Open(six, tableName)
	if err != nil {
		return nil, err
	}
	return New(tool, six, config, log), nil
}

// Apply brings the kernel to u and to what earlier calls could not write. Services that the kernel refuses are named in
// a *proxy.Refused; all others are written then, and the refused ones keep the rules that they had.
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	if t.config.Wrote != nil {
		began := t.config.Now()
		defer func() {
			t.config.Wrote(Round{Six: t.rules.Family == "ip6", Full: t.rules.Whole(), Took: t.config.Now().Sub(began)})
		}()
	}
	local := u.Addresses
	if len(t.config.NodePortAddresses) > 0 {
		var err error
		if local, err = t.config.matching(local); err != nil {
			return err
		}
	}
	t.rules.Put(proxy.Name{}, t.config.base(t.rules.Family, local, u.ServiceCIDRs))
	for name, ports := range u.Services {
		t.rules.Put(name, t.config.service(t.rules.Family, t.ofFamily(ports)))
	}
	refused, err := t.rules.Flush(ctx)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return &proxy.Refused{Services: refused}
	}
	return nil
}

func (t *Table) ofFamily(ports []proxy.Port) []proxy.Port {
	var out []proxy.Port
	for _, p := range ports {
		if p.ClusterIP.Is4() == (t.rules.Family == "ip") {
			out = append(out, p)
		}
	}
	return out
}

// matching are the machine's addresses that NodePortAddresses lets through, and with Primary the node's own.
func (c *Config) matching(own []netip.Addr) ([]netip.Addr, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	return slices.DeleteFunc(all, func(a netip.Addr) bool {
		return !(c.Primary && slices.Contains(own, a)) &&
			!slices.ContainsFunc(c.NodePortAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
	}), nil
}

// Remove deletes the tables of both families, if they are there.
func Remove(ctx context.Context) error { return nftables.Remove(ctx, tableName) }
