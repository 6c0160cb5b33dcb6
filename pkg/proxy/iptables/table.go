// Package iptables writes a node's service rules into the kernel with iptables, in chains under the names that other
// tools know from Kubernetes. A round changes the chains that differ from those of the round before; the first one, one
// after an error, and one now and then write everything.
//
// A service becomes a fragment of chains; the chains of all fragments are compared with those of the last round; what
// differs is written in one run of iptables-restore, which replaces the rules of each table as a whole. So no packet
// meets half of a change within a table.
package iptables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

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
	// Primary limits node ports to the node's own addresses, and those of NodePortAddresses.
	Primary bool
	// NodePortAddresses limits node ports to the machine's addresses in these ranges. Empty, without Primary: all but
	// loopback.
	NodePortAddresses []netip.Prefix
	// Interfaces lists the machine's addresses; needed with NodePortAddresses.
	Interfaces func() ([]netip.Addr, error)
	// Now is the clock by which everything is written now and then.
	Now func() time.Time
	// Wrote hears of each round: how many rules it wrote of each table, how many there are, whether it wrote
	// everything, and how it fared.
	Wrote func(Round)
}

// Round is what a round did.
type Round struct {
	Six, Full bool
	Took      time.Duration
	// Last and Total are rules written and rules that there are, by table.
	Last, Total map[string]int
	Err         error
}

// fullEvery is how old a whole write may be. It heals what others changed in our chains.
const fullEvery = time.Hour

// Table is the rules of one family. Apply must not be called concurrently.
//
// The goroutine of the proxy's loop owns it.
type Table struct {
	config Config
	six    bool
	tool   Tool
	log    *slog.Logger

	services map[proxy.Name]fragment
	// health are the services' health check ports: an Update has those of changed services alone.
	health map[proxy.Name]uint16
	// has are the chains as they were written, by table; nil when that is not known.
	has  map[chainRef][]string
	full time.Time
}

// New returns the rules of family 4 or 6. Nothing is written before the first Apply.
func New(tool Tool, six bool, config Config, log *slog.Logger) *Table {
	return &Table{config: config, six: six, tool: tool, log: log, services: map[proxy.Name]fragment{},
		health: map[proxy.Name]uint16{}}
}

// Open returns the rules with the system's iptables. It fails where that is missing.
func Open(six bool, config Config, log *slog.Logger) (*Table, error) {
	tool := toolOf(six)
	if _, err := exec.LookPath(string(tool) + "-restore"); err != nil {
		return nil, fmt.Errorf("the iptables mode needs the program %s-restore: %w", tool, err)
	}
	return New(tool, six, config, log), nil
}

func toolOf(six bool) programs {
	if six {
		return "ip6tables"
	}
	return "iptables"
}

// Apply brings the kernel to u and to what earlier calls could not write.
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	for name, ports := range u.Services {
		mine := slices.DeleteFunc(slices.Clone(ports), func(p proxy.Port) bool { return p.ClusterIP.Is6() != t.six })
		if len(mine) == 0 {
			delete(t.services, name)
		} else {
			t.services[name] = t.config.service(mine)
		}
	}
	for name, h := range u.Health {
		if t.health[name] = h.Port; h.Port == 0 {
			delete(t.health, name)
		}
	}
	local, err := t.local(u.Addresses)
	if err != nil {
		return err
	}
	began := t.config.Now()
	// Only in rounds without changes of services: the question costs a process.
	if t.has != nil && len(u.Services) == 0 && !t.undisturbed(ctx) {
		t.log.Warn("somebody removed the rules: writing all of them again")
		t.has = nil
	}
	full := t.has == nil || began.Sub(t.full) >= fullEvery
	want := t.wanted(&u, local)
	last, err := t.write(ctx, want, full)
	t.config.Wrote(Round{Six: t.six, Full: full, Took: t.config.Now().Sub(began), Last: last, Total: count(want),
		Err: err})
	if err != nil {
		t.has = nil // all of it again, whatever is there
		return err
	}
	if full {
		t.full = began
	}
	t.has = want
	return nil
}

// local are the addresses that take node ports, of the node's own and the machine's; nil if all do.
func (t *Table) local(own []netip.Addr) ([]netip.Addr, error) {
	switch {
	case t.anyLocal():
		return nil, nil
	case len(t.config.NodePortAddresses) == 0:
		return own, nil
	}
	all, err := t.config.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	return slices.DeleteFunc(all, func(a netip.Addr) bool {
		return !(t.config.Primary && slices.Contains(own, a)) &&
			!slices.ContainsFunc(t.config.NodePortAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
	}), nil
}

// undisturbed reports whether the chain that is written for this question alone is there still: who flushes tables
// takes it away.
//
// It is Kubernetes' canary: firewalld and others flush all tables when they reload.
func (t *Table) undisturbed(ctx context.Context) bool {
	return t.tool.Run(ctx, "-t", "nat", "-S", canaryChain) == nil
}

// wanted are all chains as they should be.
//
// Sorted by service, so that equal states give equal chains.
func (t *Table) wanted(u *proxy.Update, local []netip.Addr) map[chainRef][]string {
	out := t.config.fixed()
	for _, p := range []chainRef{natServices, natNodePorts, filterServices, filterExternal, filterFirewall,
		filterNodePorts} {
		out[p] = nil
	}
	names := slices.SortedFunc(maps.Keys(t.services), func(a, b proxy.Name) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, name := range names {
		f := t.services[name]
		for chain, rules := range f.chains {
			out[chainRef{"nat", chain}] = rules
		}
		for at, rules := range f.common {
			out[at] = append(out[at], rules...)
		}
	}
	for at, rules := range t.last(u, local) {
		out[at] = append(out[at], rules...)
	}
	return out
}

func count(chains map[chainRef][]string) map[string]int {
	out := map[string]int{"nat": 0, "filter": 0}
	for at, rules := range chains {
		out[at.table] += len(rules)
	}
	return out
}

// write writes the chains that differ from what is there, or all, and removes those that are wanted no longer. It
// returns how many rules of each table that were.
//
// Within a table all named chains are made or emptied first, then filled, and removed last: a rule may only jump to a
// chain that exists, and only an empty chain that nothing refers to can go.
func (t *Table) write(ctx context.Context, want map[chainRef][]string, full bool) (map[string]int, error) {
	gone, err := t.gone(ctx, want, full)
	if err != nil {
		return nil, err
	}
	last := map[string]int{"nat": 0, "filter": 0}
	var script bytes.Buffer
	for _, table := range []string{"filter", "nat"} {
		var changed []chainRef
		for at, rules := range want {
			if has, there := t.has[at]; at.table == table && (full || !there || !slices.Equal(has, rules)) {
				changed = append(changed, at)
			}
		}
		removed := slices.DeleteFunc(slices.Clone(gone), func(at chainRef) bool { return at.table != table })
		if len(changed)+len(removed) == 0 {
			continue
		}
		byName := func(a, b chainRef) int { return strings.Compare(a.chain, b.chain) }
		slices.SortFunc(changed, byName)
		slices.SortFunc(removed, byName)
		fmt.Fprintf(&script, "*%s\n", table)
		for _, at := range slices.Concat(changed, removed) {
			fmt.Fprintf(&script, ":%s - [0:0]\n", at.chain) // makes it, or empties it
		}
		for _, at := range changed {
			for _, rule := range want[at] {
				fmt.Fprintf(&script, "-A %s %s\n", at.chain, rule)
			}
			last[table] += len(want[at])
		}
		for _, at := range removed {
			fmt.Fprintf(&script, "-X %s\n", at.chain)
		}
		script.WriteString("COMMIT\n")
	}
	if script.Len() > 0 {
		if err := t.tool.Restore(ctx, script.Bytes()); err != nil {
			return last, fmt.Errorf("write the rules for Services: %w", err)
		}
	}
	// Only then: the jumps are one process each, and nothing but a flush removes them.
	if full {
		return last, t.hook(ctx)
	}
	return last, nil
}

// gone are the chains of ports and endpoints that are not wanted: of the round before, or of whoever wrote some before
// a full one.
func (t *Table) gone(ctx context.Context, want map[chainRef][]string, full bool) ([]chainRef, error) {
	var out []chainRef
	if !full {
		for at := range t.has {
			if _, wanted := want[at]; !wanted {
				out = append(out, at)
			}
		}
		return out, nil
	}
	there, err := chains(ctx, t.tool, "nat")
	for _, name := range there {
		at := chainRef{"nat", name}
		if _, wanted := want[at]; !wanted && isOwn(name) {
			out = append(out, at)
		}
	}
	return out, err
}

// chains are the names of a table's chains.
func chains(ctx context.Context, tool Tool, table string) ([]string, error) {
	saved, err := tool.Save(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("read the rules that are there: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(saved)) {
		if name, ok := strings.CutPrefix(line, ":"); ok {
			name, _, _ = strings.Cut(name, " ")
			out = append(out, name)
		}
	}
	return out, nil
}

// hook leads the kernel's chains to ours.
func (t *Table) hook(ctx context.Context) error {
	var errs []error
	for _, j := range jumps {
		rule := jumpRule(j.comment, j.to, j.fresh)
		if t.tool.Run(ctx, append([]string{"-t", j.table, "-C", j.from}, rule...)...) != nil {
			errs = append(errs, t.tool.Run(ctx, append([]string{"-t", j.table, "-I", j.from}, rule...)...))
		}
	}
	return errors.Join(errs...)
}

func jumpRule(text, to string, fresh bool) []string {
	var rule []string
	if fresh {
		rule = append(rule, "-m", "conntrack", "--ctstate", "NEW")
	}
	return append(rule, "-m", "comment", "--comment", text, "-j", to)
}

// Remove takes away all rules and chains of a proxy's iptables mode, of both families, if they are there.
func Remove(ctx context.Context) error {
	var errs []error
	for _, six := range []bool{false, true} {
		if tool := toolOf(six); installed(tool) {
			errs = append(errs, remove(ctx, tool))
		}
	}
	return errors.Join(errs...)
}

func installed(tool programs) bool {
	_, err := exec.LookPath(string(tool) + "-save")
	return err == nil
}

// remove takes away the rules and chains of one family. The jumps go first: a chain that is jumped to cannot be
// removed.
func remove(ctx context.Context, tool Tool) error {
	var script bytes.Buffer
	var errs []error
	for _, table := range []string{"nat", "filter"} {
		there, err := chains(ctx, tool, table)
		if err != nil {
			return err
		}
		var ours []string
		for _, name := range there {
			at := chainRef{table, name}
			_, isFixed := new(Config).fixed()[at]
			shared := slices.Contains([]chainRef{natServices, natNodePorts, filterServices, filterExternal,
				filterFirewall, filterNodePorts}, at)
			if isFixed || shared || table == "nat" && isOwn(name) {
				ours = append(ours, name)
			}
		}
		if len(ours) == 0 {
			continue
		}
		for _, j := range jumps {
			if j.table == table && slices.Contains(ours, j.to) {
				rule := append([]string{"-t", table, "-D", j.from}, jumpRule(j.comment, j.to, j.fresh)...)
				if err := tool.Run(ctx, rule...); err != nil &&
					tool.Run(ctx, append([]string{"-t", table, "-C", j.from},
						jumpRule(j.comment, j.to, j.fresh)...)...) == nil {
					errs = append(errs, err) // it is there, and stays
				}
			}
		}
		fmt.Fprintf(&script, "*%s\n", table)
		for _, name := range ours {
			fmt.Fprintf(&script, ":%s - [0:0]\n", name)
		}
		for _, name := range ours {
			fmt.Fprintf(&script, "-X %s\n", name)
		}
		script.WriteString("COMMIT\n")
	}
	if script.Len() > 0 {
		errs = append(errs, tool.Restore(ctx, script.Bytes()))
	}
	return errors.Join(errs...)
}
