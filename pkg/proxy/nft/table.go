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

	books *books
	// pending is what services should have and do not have yet; an empty part is a service that is gone.
	pending map[proxy.Name]fragment
	// refused are the pending services that the kernel would not take. They are tried apart from the others, so that these cost
	// nothing again.
	refused map[proxy.Name]bool
	// written is set while the kernel is known to hold what the books say.
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
		books: newBooks(), pending: map[proxy.Name]fragment{}, refused: map[proxy.Name]bool{},
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

// Apply brings the kernel to u and to what earlier calls could not write. Services that the kernel refuses are named in a
// *proxy.Refused; all others are written then, and the refused ones keep the rules that they had.
//
// The whole table is written by the first Apply, by one that finds it broken (a firewall's restart flushes everything), and once
// after a service was refused, in case that somebody else's change was the reason.
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	local := u.Addresses
	if len(t.config.NodePortAddresses) > 0 {
		var err error
		if local, err = t.config.matching(); err != nil {
			return err
		}
	}
	t.want(local, u.Services)
	if t.written && len(t.pending) == 0 && !t.intact(ctx) {
		t.log.Warn("Somebody changed the nftables table, rewriting it", "family", t.ip)
		t.written = false
	}
	write := t.amend
	if !t.written {
		write = t.rewrite
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("write the nftables table %q (%s): %w", tableName, t.ip, err)
	}
	return nil
}

// want notes what the services and the common part should be.
func (t *Table) want(local []netip.Addr, changed map[proxy.Name][]proxy.Port) {
	put := func(name proxy.Name, f fragment) {
		have := t.books.parts[name]
		if reflect.DeepEqual(have, f) || (have.empty() && f.empty()) {
			delete(t.pending, name)
			delete(t.refused, name)
			return
		}
		t.pending[name] = f
	}
	put(proxy.Name{}, t.config.base(t.ip, local))
	for name, ports := range changed {
		put(name, t.config.service(t.ip, t.ofFamily(ports)))
	}
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

// transaction plans the way from g to the pending parts of names, and notes it in b.
func (t *Table) transaction(b *books, g ground, names []proxy.Name) *knftables.Transaction {
	next := map[proxy.Name]fragment{}
	for _, name := range names {
		next[name] = t.pending[name]
	}
	tx := t.nft.NewTransaction()
	d := newDiff(tx)
	if g.whole {
		next = t.books.with(next)
		if g.left == nil {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
		}
		tx.Add(&knftables.Table{Comment: knftables.PtrTo("rules for kube-proxy")})
	}
	t.plan(b, d, next)
	d.over(g.left)
	d.write()
	return tx
}

// plan fills d with the way from what b says to next, and notes it in b.
func (t *Table) plan(b *books, d *diff, next map[proxy.Name]fragment) {
	names := slices.SortedFunc(maps.Keys(next), compareNames)
	freed := false
	for _, name := range names {
		freed = release(b, d, name, next[name]) || freed
	}
	if freed {
		for name := range b.waiting {
			if _, ok := next[name]; !ok {
				next[name] = b.parts[name]
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		t.claim(b, d, name, next[name])
	}
}

// release plans the removal of the elements that a service has and will not have; it tells whether there were any.
func release(b *books, d *diff, name proxy.Name, next fragment) bool {
	freed := false
	for e, value := range b.parts[name].elements {
		if b.owners[e] != name {
			continue
		}
		if v, stays := next.elements[e]; !stays || v != value {
			d.dropElement(e, value)
			b.disown(e)
			freed = freed || !stays
		}
	}
	return freed
}

// claim plans everything else of a service and makes next its part.
func (t *Table) claim(b *books, d *diff, name proxy.Name, next fragment) {
	waited := b.waiting[name]
	b.stopWaiting(name)
	for e, value := range next.elements {
		owner, taken := b.owners[e]
		switch {
		case !taken:
			b.own(e, name)
			d.addElement(e, value)
		case owner != name:
			if !waited {
				t.log.Warn("A service claims an address and port that another one has", "service", name, "owner", owner, "key", e.key)
			}
			waited = true
			b.wait(name)
		}
	}
	d.parts(b.parts[name], next)
	b.setPart(name, next)
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
