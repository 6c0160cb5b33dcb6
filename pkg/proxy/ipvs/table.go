// Package ipvs makes a node's Services virtual servers of IPVS, in the kernel: one at each address and port of a
// Service, with the endpoints as real servers behind it. The addresses are on an interface of the proxy's own
// (kube-ipvs0), and a small table of packet rules does what IPVS cannot: source ranges, masquerade, refusals.
//
// A round adds real servers before it lets packets through, and removes virtual servers last. Real servers that are no
// endpoint any more get no new connections, and go when those that they have end. Virtual servers of others are left
// alone: the proxy's own are those at addresses on its interface, and those in the set virtual-servers of its table,
// which outlives the process.
package ipvs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/nftables"
	"bonsai/pkg/proxy"
	"bonsai/pkg/safetext"
)

// schedulerMaglev is the scheduler that hashes a client's port only with a flag, which upstream sets.
const schedulerMaglev = "mh"

// drainBound is how long a real server may keep connections after it stopped being an endpoint. Idle ones end before
// that, by IPVS's own timeout.
const drainBound = time.Hour

// Config is the same for both families.
type Config struct {
	// Scheduler chooses the real server for a connection: rr, wrr, lc, sh and so on.
	Scheduler string
	// Exclude are addresses at which no virtual server is removed.
	Exclude []netip.Prefix
	// Timeouts are IPVS's own, for connections without packets; 0 leaves one as it is.
	Timeouts Timeouts
	// StrictARP keeps the node from answering for addresses on Link.
	StrictARP bool
	// ClusterCIDRs are the pods' addresses; traffic to a cluster IP from elsewhere is masqueraded. Empty: none is.
	ClusterCIDRs []netip.Prefix
	// PodInterface, unless empty, tells the node's pods by the interface that their packets come through, in place of
	// their addresses. A * at its end stands for anything.
	PodInterface string
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll bool
	// MasqueradeMark is the bit of a packet's mark that says it is to be masqueraded; 0: 0x4000.
	MasqueradeMark uint32
	// NodePorts returns the machine's addresses that take node ports; own are the node's.
	NodePorts func(own []netip.Addr) ([]netip.Addr, error)
	// Now is the clock by which real servers are given up.
	Now func() time.Time
}

// Timeouts are how long IPVS remembers connections without packets.
type Timeouts struct{ TCP, TCPFin, UDP time.Duration }

// Table is the virtual servers of one family. Apply must not be called concurrently.
type Table struct {
	config Config
	six    bool
	kernel Kernel
	tool   knftables.Interface
	rules  *nftables.Ledger[proxy.Name]
	log    *slog.Logger

	services map[proxy.Name][]proxy.Port
	owners   map[Key]proxy.Name
	// mine are the virtual servers that the proxy made; nil until the record of an earlier process was read.
	mine map[Key]bool
	// has are the real servers as they were last brought to be; a key that is missing is looked at again.
	has map[Key][]netip.AddrPort
	// draining are the real servers of weight 0, with the time since when.
	draining map[Key]map[netip.AddrPort]time.Time
}

// New returns the virtual servers of family 4 or 6. Nothing is written before the first Apply.
func New(kernel Kernel, tool knftables.Interface, six bool, config Config, log *slog.Logger) *Table {
	return &Table{config: config, six: six, kernel: kernel, tool: tool, log: log,
		rules: nftables.NewLedger(nftables.LedgerConfig[proxy.Name]{
			Tool: tool, Family: nftables.Family(six), Table: tableName, Whose: "rules for kube-proxy",
			Entrance: entrance, Compare: func(a, b proxy.Name) int { return strings.Compare(a.String(), b.String()) },
			Log: log}),
		services: map[proxy.Name][]proxy.Port{}, owners: map[Key]proxy.Name{}, has: map[Key][]netip.AddrPort{},
		draining: map[Key]map[netip.AddrPort]time.Time{}}
}

// Apply brings the kernel to u and to what earlier calls could not write. Services whose virtual servers somebody else
// has, or whose addresses the kernel refuses, are named in a *proxy.Refused; all others are written then, and of the
// refused ones what can be.
func (t *Table) Apply(ctx context.Context, u proxy.Update) error {
	for name, ports := range u.Services {
		mine := slices.DeleteFunc(slices.Clone(ports), func(p proxy.Port) bool { return p.ClusterIP.Is6() != t.six })
		if t.services[name] = mine; len(mine) == 0 {
			delete(t.services, name)
		}
	}
	refused, err := t.round(ctx, &u)
	if err != nil {
		clear(t.has) // all of it again, whatever is there
		return err
	}
	for name, why := range refused {
		refused[name] = safetext.Error(why) // one for each endpoint that the kernel refuses
	}
	if len(refused) > 0 {
		return &proxy.Refused{Services: refused}
	}
	return nil
}

func (t *Table) round(ctx context.Context, u *proxy.Update) (map[proxy.Name]error, error) {
	local, err := t.config.NodePorts(u.Addresses)
	if err != nil {
		return nil, fmt.Errorf("find what takes node ports: %w", err)
	}
	there, err := t.kernel.Servers()
	if err != nil {
		return nil, fmt.Errorf("list the virtual servers: %w", err)
	}
	addresses, elsewhere, err := t.kernel.Addresses()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	if err := t.recall(ctx, there, addresses); err != nil {
		return nil, err
	}
	if len(u.Services) == 0 {
		clear(t.has) // a round to find out what others changed
	}
	want := t.config.plan(t.services, local, t.owners, func(service, owner proxy.Name, key Key) {
		t.log.Debug("A service claims an address and port that another one has", "service", service, "owner", owner,
			"key", elementKey(key))
	})
	leaveElsewhere(want, elsewhere)
	refused := t.leaveForeign(want, there)

	// Real servers first, then addresses that go, the rules, addresses that come, virtual servers that go: at no time
	// does a packet to a Service reach a process of the node.
	errs := []error{t.serve(want, there, refused)}
	keep := bound(want)
	for _, a := range addresses {
		if !keep[a] {
			errs = append(errs, t.kernel.Unbind(a))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t.rules.Put(proxy.Name{}, t.config.fragment(nftables.Family(t.six), want, t.hairpins(), u.ServiceCIDRs))
	badRules, err := t.rules.Flush(ctx)
	if err = errors.Join(err, badRules[proxy.Name{}]); err != nil {
		return nil, err
	}
	for a := range keep {
		if !slices.Contains(addresses, a) {
			errs = append(errs, t.bind(a, want, refused))
		}
	}
	for key := range t.mine {
		if _, wanted := want[key]; !wanted {
			errs = append(errs, t.forget(key, there))
		}
	}
	return refused, errors.Join(errs...)
}

// recall reads, once, which virtual servers an earlier process made.
func (t *Table) recall(ctx context.Context, there map[Key]Server, addresses []netip.Addr) error {
	if t.mine != nil {
		return nil
	}
	recorded, err := record(ctx, t.tool)
	if err != nil {
		return err
	}
	t.mine = map[Key]bool{}
	for key := range there {
		if recorded[key] || slices.Contains(addresses, key.At.Addr()) {
			t.mine[key] = true
		}
	}
	return nil
}

// record returns the virtual servers in the set of the table, none if there is no table.
func record(ctx context.Context, tool knftables.Interface) (map[Key]bool, error) {
	elements, err := tool.ListElements(ctx, "set", virtualServers)
	if err != nil && !knftables.IsNotFound(err) {
		return nil, fmt.Errorf("read which virtual servers are the proxy's: %w", err)
	}
	out := map[Key]bool{}
	for _, e := range elements {
		if len(e.Key) != 3 {
			continue
		}
		addr, errAddr := netip.ParseAddr(e.Key[0])
		port, errPort := strconv.ParseUint(e.Key[2], 10, 16)
		if errAddr == nil && errPort == nil {
			out[Key{At: netip.AddrPortFrom(addr, uint16(port)), Protocol: e.Key[1]}] = true
		}
	}
	return out, nil
}

// leaveForeign takes out of want what somebody else has, and returns the services that lack it.
func (t *Table) leaveForeign(want map[Key]wanted, there map[Key]Server) map[proxy.Name]error {
	refused := map[proxy.Name]error{}
	for key, w := range want {
		if _, exists := there[key]; exists && !t.mine[key] {
			refused[w.service] = errors.Join(refused[w.service],
				fmt.Errorf("virtual server %s: exists, and was not made by this proxy", elementKey(key)))
			delete(want, key)
		}
	}
	return refused
}

// leaveElsewhere keeps addresses from Link that another interface of the machine has: packets to them come in anyway,
// and a Service takes its port alone. On Link, all other ports of the address would be closed, such as the machine's
// own SSH server, by whoever may name it as an external IP. A cluster IP stays: all of it is the Service's.
func leaveElsewhere(want map[Key]wanted, elsewhere []netip.Addr) {
	for key, w := range want {
		if w.access != inside && w.bound && slices.Contains(elsewhere, key.At.Addr()) {
			w.bound = false
			want[key] = w
		}
	}
}

// isRefusal reports whether the kernel does not take what a service asks for, such as a broadcast address as a real
// server. Whoever may write one EndpointSlice must not keep all other services from being written.
func isRefusal(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE) || errors.Is(err, unix.EADDRNOTAVAIL)
}

// serve makes virtual servers and their real ones what they should be, except that none goes whose connections live.
// What the kernel refuses is added to refused, and a virtual server that it refuses is taken out of want.
func (t *Table) serve(want map[Key]wanted, there map[Key]Server, refused map[proxy.Name]error) error {
	var errs []error
	for key, w := range want {
		err := t.serveOne(key, w, there)
		if !isRefusal(err) {
			errs = append(errs, err)
			continue
		}
		refused[w.service] = errors.Join(refused[w.service], err)
		if !t.mine[key] {
			delete(want, key)
		}
	}
	return errors.Join(errs...)
}

// serveOne is serve for one virtual server.
func (t *Table) serveOne(key Key, w wanted, there map[Key]Server) error {
	var changed error
	server, exists := there[key]
	switch {
	case !exists:
		delete(t.has, key)
		if err := t.kernel.CreateServer(key, w.Server); err != nil {
			delete(t.mine, key)
			return fmt.Errorf("create the virtual server %s: %w", elementKey(key), err)
		}
		t.mine[key] = true
	case server != w.Server:
		if err := t.kernel.UpdateServer(key, w.Server); err != nil {
			changed = fmt.Errorf("change the virtual server %s: %w", elementKey(key), err)
		}
	}
	if has, known := t.has[key]; known && len(t.draining[key]) == 0 && slices.Equal(has, w.reals) {
		return changed
	}
	if err := t.balance(key, w.reals); err != nil {
		return errors.Join(changed, fmt.Errorf("the real servers of %s: %w", elementKey(key), err))
	}
	t.has[key] = w.reals
	return changed
}

// bind puts an address on Link. If the kernel refuses it, that is added to refused, for all services that have it.
func (t *Table) bind(a netip.Addr, want map[Key]wanted, refused map[proxy.Name]error) error {
	err := t.kernel.Bind(a)
	if !isRefusal(err) {
		return err
	}
	for key, w := range want {
		if w.bound && key.At.Addr() == a {
			refused[w.service] = errors.Join(refused[w.service], err)
		}
	}
	return nil
}

// balance makes the real servers of a virtual one what they should be.
func (t *Table) balance(key Key, want []netip.AddrPort) error {
	there, err := t.kernel.Reals(key)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range want {
		switch r, exists := there[e]; {
		case !exists:
			errs = append(errs, t.kernel.CreateReal(key, e, 1))
		case r.Weight != 1:
			errs = append(errs, t.kernel.UpdateReal(key, e, 1))
		}
		delete(t.draining[key], e)
	}
	for e, r := range there {
		if !slices.Contains(want, e) {
			errs = append(errs, t.retire(key, e, r))
		}
	}
	for e := range t.draining[key] {
		if _, exists := there[e]; !exists {
			delete(t.draining[key], e)
		}
	}
	if len(t.draining[key]) == 0 {
		delete(t.draining, key)
	}
	return errors.Join(errs...)
}

// retire removes a real server at once if it has no connections, or if they are UDP's, which know no end; else it gets
// no new ones, and goes when the last one ends, or after drainBound.
func (t *Table) retire(key Key, e netip.AddrPort, r Real) error {
	since, drains := t.draining[key][e]
	if key.Protocol == "udp" || r.Connections == 0 || drains && t.config.Now().Sub(since) >= drainBound {
		delete(t.draining[key], e)
		return t.kernel.RemoveReal(key, e)
	}
	if !drains {
		if t.draining[key] == nil {
			t.draining[key] = map[netip.AddrPort]time.Time{}
		}
		t.draining[key][e] = t.config.Now()
	}
	if r.Weight == 0 {
		return nil
	}
	return t.kernel.UpdateReal(key, e, 0)
}

// forget removes a virtual server of the proxy's, unless it is gone or its address is excluded.
func (t *Table) forget(key Key, there map[Key]Server) error {
	if slices.ContainsFunc(t.config.Exclude, func(p netip.Prefix) bool { return p.Contains(key.At.Addr()) }) {
		return nil
	}
	if _, exists := there[key]; exists {
		if err := t.kernel.RemoveServer(key); err != nil {
			return fmt.Errorf("remove the virtual server %s: %w", elementKey(key), err)
		}
	}
	delete(t.mine, key)
	delete(t.has, key)
	delete(t.draining, key)
	return nil
}

// hairpins are the endpoints that may be on this node: what they send to their own Service must come from the node, or
// they would answer themselves directly.
func (t *Table) hairpins() map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for _, ports := range t.services {
		for i := range ports {
			for _, e := range slices.Concat(ports[i].Here, ports[i].Local) {
				out[e.Addr()] = true
			}
		}
	}
	return out
}
