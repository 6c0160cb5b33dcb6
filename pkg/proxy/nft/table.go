// Package nft writes a node's service rules into the kernel with nftables: a table called kube-proxy per IP family, changed in
// one transaction per round, and only where something changed.
package nft

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
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
	nft    knftables.Interface
	ip     string // "ip" or "ip6"
	config Config
	log    *slog.Logger

	// parts is the desired table: what each service has, and under the zero Name what is always there.
	parts map[proxy.Name]fragment
	// owners tells whose an element is. Of two services that claim one, the first keeps it and the other waits.
	owners  map[element]proxy.Name
	waiting map[proxy.Name]bool
	// written is set while the kernel is known to hold parts.
	written bool
}

// New returns the table of family 4 or 6, using nft. Nothing is written before the first Apply.
func New(nft knftables.Interface, six bool, config Config, log *slog.Logger) *Table {
	ip := "ip"
	if six {
		ip = "ip6"
	}
	return &Table{
		nft: nft, ip: ip, config: config, log: log,
		parts: map[proxy.Name]fragment{}, owners: map[element]proxy.Name{}, waiting: map[proxy.Name]bool{},
	}
}

// Open returns the table with the system's nft tool. It fails where that is missing or the process may not use it.
func Open(six bool, config Config, log *slog.Logger) (*Table, error) {
	family := knftables.IPv4Family
	if six {
		family = knftables.IPv6Family
	}
	tool, err := knftables.New(family, tableName)
	if err != nil {
		return nil, fmt.Errorf("open nftables (%s): %w", family, err)
	}
	return New(tool, six, config, log), nil
}

// Apply brings the kernel to u. After an error the next Apply writes the whole table anew, in one transaction; so does an Apply
// without changes that finds the table broken (a firewall's restart flushes everything).
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	local := u.Addresses
	if len(t.config.NodePortAddresses) > 0 {
		var err error
		if local, err = t.config.matching(); err != nil {
			return err
		}
	}
	tx := t.transaction(local, u)
	if tx.NumOperations() == 0 {
		if t.intact(ctx) {
			return nil
		}
		t.log.Warn("Somebody changed the nftables table, writing it anew", "family", t.ip)
		t.written = false
		tx = t.transaction(local, proxy.Update{})
	}
	if err := t.nft.Run(ctx, tx); err != nil {
		t.written = false
		return fmt.Errorf("write the nftables table %q (%s): %w", tableName, t.ip, err)
	}
	t.written = true
	return nil
}

// transaction plans the way from what is written to u.
func (t *Table) transaction(local []netip.Addr, u proxy.Update) *knftables.Transaction {
	tx := t.nft.NewTransaction()
	if !t.written {
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		tx.Add(&knftables.Table{Comment: knftables.PtrTo("rules for kube-proxy")})
	}
	t.plan(tx, local, u.Services)
	return tx
}

// entrance is the chain that stands for the whole table in intact.
const entrance = "nat-prerouting"

// intact tells whether the kernel still has our table. One chain is looked at, which is cheap: firewalls flush or delete whole
// tables, nobody edits single rules of ours. If the tool itself fails, there is nothing to be repaired.
func (t *Table) intact(ctx context.Context) bool {
	rules, err := t.nft.ListRules(ctx, entrance)
	if err != nil && !knftables.IsNotFound(err) {
		t.log.Warn("Could not check the nftables table", "family", t.ip, "err", err)
		return true
	}
	return len(rules) > 0
}

// plan fills tx and updates the desired state.
func (t *Table) plan(tx *knftables.Transaction, local []netip.Addr, changed map[proxy.Name][]proxy.Port) {
	next := map[proxy.Name]fragment{}
	if common := t.config.base(t.ip, local); !reflect.DeepEqual(common, t.parts[proxy.Name{}]) {
		next[proxy.Name{}] = common
	}
	for name, ports := range changed {
		next[name] = t.config.service(t.ip, t.ofFamily(ports))
	}
	if !t.written {
		for name, part := range t.parts {
			if _, ok := next[name]; !ok {
				next[name] = part
			}
		}
		t.parts, t.owners = map[proxy.Name]fragment{}, map[element]proxy.Name{}
		clear(t.waiting)
	}
	d := newDiff(tx)
	names := slices.SortedFunc(maps.Keys(next), compareNames)
	freed := false
	for _, name := range names {
		freed = t.release(d, name, next[name]) || freed
	}
	if freed {
		names = t.wake(next, names)
	}
	for _, name := range names {
		t.claim(d, name, next[name])
	}
	d.write()
}

// release plans the removal of the elements that a service has and will not have; it tells whether there were any.
func (t *Table) release(d *diff, name proxy.Name, next fragment) bool {
	freed := false
	for e, value := range t.parts[name].elements {
		if t.owners[e] != name {
			continue
		}
		if v, stays := next.elements[e]; !stays || v != value {
			d.dropElement(e, value)
			delete(t.owners, e)
			freed = freed || !stays
		}
	}
	return freed
}

// wake adds the services that wait for an element to those that are planned.
func (t *Table) wake(next map[proxy.Name]fragment, names []proxy.Name) []proxy.Name {
	for name := range t.waiting {
		if _, ok := next[name]; !ok {
			next[name] = t.parts[name]
			names = append(names, name)
		}
	}
	return names
}

// claim plans everything else of a service and makes next its desired part.
func (t *Table) claim(d *diff, name proxy.Name, next fragment) {
	delete(t.waiting, name)
	for e, value := range next.elements {
		owner, taken := t.owners[e]
		switch {
		case !taken:
			t.owners[e] = name
			d.addElement(e, value)
		case owner != name:
			if !t.waiting[name] {
				t.log.Warn("A service claims an address and port that another one has", "service", name, "owner", owner, "key", e.key)
			}
			t.waiting[name] = true
		}
	}
	d.parts(t.parts[name], next)
	if len(next.elements) == 0 && len(next.chains) == 0 {
		delete(t.parts, name)
		return
	}
	t.parts[name] = next
}

func (t *Table) ofFamily(ports []proxy.Port) []proxy.Port {
	var out []proxy.Port
	for _, p := range ports {
		if p.ClusterIP.Is4() == (t.ip == "ip") {
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
func Remove(ctx context.Context) error {
	for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
		tool, err := knftables.New(family, tableName)
		if err != nil {
			return fmt.Errorf("open nftables (%s): %w", family, err)
		}
		tx := tool.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if err := tool.Run(ctx, tx); err != nil {
			return fmt.Errorf("delete the nftables table %q (%s): %w", tableName, family, err)
		}
	}
	return nil
}
