// Package nft writes a node's service rules into the kernel with nftables: a table called kube-proxy per IP family, changed in
// one transaction per round, and only where something changed.
package nft

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
)

// Config is the same for both families.
type Config struct {
	// ClusterCIDRs are the pods' addresses; traffic to a cluster IP from elsewhere is masqueraded. Empty: none is.
	ClusterCIDRs []netip.Prefix
	// ServiceCIDRs are refused wherever no service claims an address.
	ServiceCIDRs []netip.Prefix
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll bool
	// NodePortAddresses limits node ports to the node's addresses in these ranges. Empty: the node's primary addresses.
	NodePortAddresses []netip.Prefix
	// Interfaces lists the machine's addresses; needed with NodePortAddresses.
	Interfaces func() ([]netip.Addr, error)
}

// Table is the table of one family. Apply must not be called concurrently.
type Table struct {
	config Config
	rules  ledger[proxy.Name]
}

// New returns the table of family 4 or 6, using nft. Nothing is written before the first Apply.
func New(nft knftables.Interface, six bool, config Config, log *slog.Logger) *Table {
	t := &Table{config: config, rules: ledger[proxy.Name]{
		nft: nft, ip: family(six), name: tableName, whose: "rules for kube-proxy", entrance: entrance, compare: compareNames, log: log,
		conflict: func(service, owner proxy.Name, key string) {
			log.Warn("A service claims an address and port that another one has", "service", service, "owner", owner, "key", key)
		},
	}}
	t.rules.reset()
	return t
}

// family is what nftables calls an address family in rules.
func family(six bool) string {
	if six {
		return "ip6"
	}
	return "ip"
}

// Open returns the table with the system's nft tool. It fails where that is missing or the process may not use it.
func Open(six bool, config Config, log *slog.Logger) (*Table, error) {
	tool, err := open(six, tableName)
	if err != nil {
		return nil, err
	}
	return New(tool, six, config, log), nil
}

// open returns the system's nft tool for a table.
func open(six bool, table string) (knftables.Interface, error) {
	f := knftables.IPv4Family
	if six {
		f = knftables.IPv6Family
	}
	tool, err := knftables.New(f, table)
	if err != nil {
		return nil, fmt.Errorf("open nftables (%s): %w", f, err)
	}
	return tool, nil
}

// Apply brings the kernel to u and to what earlier calls could not write. Services that the kernel refuses are named in a
// *proxy.Refused; all others are written then, and the refused ones keep the rules that they had.
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	local := u.Addresses
	if len(t.config.NodePortAddresses) > 0 {
		var err error
		if local, err = t.config.matching(); err != nil {
			return err
		}
	}
	t.rules.put(proxy.Name{}, t.config.base(t.rules.ip, local))
	for name, ports := range u.Services {
		t.rules.put(name, t.config.service(t.rules.ip, t.ofFamily(ports)))
	}
	refused, err := t.rules.flush(ctx)
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
		if p.ClusterIP.Is4() == (t.rules.ip == "ip") {
			out = append(out, p)
		}
	}
	return out
}

// matching are the machine's addresses that NodePortAddresses lets through.
func (c *Config) matching() ([]netip.Addr, error) {
	all, err := c.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	return slices.DeleteFunc(all, func(a netip.Addr) bool {
		return !slices.ContainsFunc(c.NodePortAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
	}), nil
}

// Remove deletes the tables of both families, if they are there.
func Remove(ctx context.Context) error { return remove(ctx, tableName) }

// remove deletes a table of both families, if it is there.
func remove(ctx context.Context, table string) error {
	for _, six := range []bool{false, true} {
		tool, err := open(six, table)
		if err != nil {
			return err
		}
		tx := tool.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if err := tool.Run(ctx, tx); err != nil {
			return fmt.Errorf("delete the nftables table %q (%s): %w", table, family(six), err)
		}
	}
	return nil
}
