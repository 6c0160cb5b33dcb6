package ipvs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cloudflare/ipvs"
	"github.com/cloudflare/ipvs/netmask"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/netdump"
	"bonsai/pkg/nftables"
)

// machine is the Kernel of one family on this machine.
type machine struct {
	six    bool
	client ipvs.Client
}

var _ Kernel = (*machine)(nil)

// Open returns the virtual servers of this machine, and prepares the kernel's settings. It fails where the kernel lacks
// IPVS or the scheduler, or where the process may not use them.
func Open(six bool, config Config, log *slog.Logger) (*Table, error) {
	tool, err := nftables.Open(six, tableName)
	if err != nil {
		return nil, err
	}
	m, err := openMachine(six)
	if err != nil {
		return nil, fmt.Errorf("can't use the IPVS proxier: the kernel has no IPVS (run: modprobe ip_vs): %w", err)
	}
	if err := m.try(config.Scheduler); err != nil {
		return nil, fmt.Errorf("can't use the IPVS proxier: the scheduler %q does not work (run: modprobe ip_vs_%s): %w",
			config.Scheduler, config.Scheduler, err)
	}
	for _, s := range settings(six, config.StrictARP) {
		if err := s.set("/proc/sys"); err != nil {
			return nil, fmt.Errorf("can't use the IPVS proxier: %w", err)
		}
	}
	if t := config.Timeouts; t != (Timeouts{}) {
		if err := m.client.SetConfig(ipvs.Config{TCPTimeout: wholeSeconds(t.TCP), TCPFinTimeout: wholeSeconds(t.TCPFin),
			UDPTimeout: wholeSeconds(t.UDP)}); err != nil {
			return nil, fmt.Errorf("set the timeouts of IPVS: %w", err)
		}
	}
	return New(m, tool, six, config, log), nil
}

func openMachine(six bool) (*machine, error) {
	client, err := ipvs.New()
	if err != nil {
		return nil, err
	}
	return &machine{six: six, client: client}, nil
}

// wholeSeconds rounds up: 0 would leave the timeout as it is.
func wholeSeconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// try makes a virtual server with the scheduler, which has the kernel load the scheduler's module, and removes it. Its
// address is one that is kept for documentation.
func (m *machine) try(scheduler string) error {
	key := Key{At: netip.MustParseAddrPort("198.51.100.0:20000"), Protocol: "tcp"}
	if m.six {
		key.At = netip.MustParseAddrPort("[2001:db8::]:20000")
	}
	if err := m.CreateServer(key, Server{Scheduler: scheduler}); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil // a proxy was here, and ended before it removed it
		}
		return err
	}
	return m.RemoveServer(key)
}

// setting is one of the kernel, below /proc/sys.
type setting struct{ name, value string }

// settings are what IPVS needs: connections are tracked, or they could not be masqueraded; those to a real server that
// is gone end, instead of leading to nowhere; packets are forwarded.
func settings(six, strictARP bool) []setting {
	all := []setting{{"net/ipv4/vs/conntrack", "1"}, {"net/ipv4/vs/expire_nodest_conn", "1"},
		{"net/ipv4/vs/expire_quiescent_template", "1"}}
	if six {
		all = append(all, setting{"net/ipv6/conf/all/forwarding", "1"})
	} else {
		all = append(all, setting{"net/ipv4/ip_forward", "1"})
	}
	if strictARP {
		all = append(all, setting{"net/ipv4/conf/all/arp_ignore", "1"}, setting{"net/ipv4/conf/all/arp_announce", "2"})
	}
	return all
}

// set writes the value, unless it is there: a container may be able to read settings alone.
func (s setting) set(root string) error {
	path := filepath.Join(root, s.name)
	old, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(old)) == s.value {
		return nil
	}
	if err := os.WriteFile(path, []byte(s.value), 0); err != nil {
		return fmt.Errorf("set %s to %s: %w", strings.ReplaceAll(s.name, "/", "."), s.value, err)
	}
	return nil
}

// protocols are the ones that IPVS knows.
func protocols() map[string]ipvs.Protocol {
	return map[string]ipvs.Protocol{"tcp": ipvs.TCP, "udp": ipvs.UDP, "sctp": ipvs.SCTP}
}

func (m *machine) family() ipvs.AddressFamily {
	if m.six {
		return ipvs.INET6
	}
	return ipvs.INET
}

// named is the part of a service that identifies it.
func (m *machine) named(key Key) ipvs.Service {
	return ipvs.Service{Address: key.At.Addr(), Port: key.At.Port(), Protocol: protocols()[key.Protocol],
		Family: m.family(), Netmask: netmask.MaskFrom(key.At.Addr().BitLen(), key.At.Addr().BitLen())}
}

func (m *machine) service(key Key, s Server) ipvs.Service {
	out := m.named(key)
	out.Scheduler = s.Scheduler
	if s.AffinitySeconds > 0 {
		out.Flags |= ipvs.ServicePersistent
		out.Timeout = uint32(s.AffinitySeconds)
	}
	if s.HashPorts {
		out.Flags |= ipvs.ServiceSchedulerOpt2 // mh-port
	}
	return out
}

func (m *machine) destination(real netip.AddrPort, weight uint32) ipvs.Destination {
	return ipvs.Destination{Address: real.Addr(), Port: real.Port(), Weight: weight, Family: m.family(),
		FwdMethod: ipvs.Masquerade}
}

// Servers implements Kernel. The library says that none is there with an error.
func (m *machine) Servers() (map[Key]Server, error) {
	all, err := m.client.Services()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	names := map[ipvs.Protocol]string{}
	for name, p := range protocols() {
		names[p] = name
	}
	out := map[Key]Server{}
	for _, s := range all {
		name := names[s.Protocol]
		if s.Family != m.family() || s.FWMark != 0 || name == "" {
			continue
		}
		server := Server{Scheduler: s.Scheduler,
			HashPorts: s.Scheduler == schedulerMaglev && s.Flags&ipvs.ServiceSchedulerOpt2 != 0}
		if s.Flags&ipvs.ServicePersistent != 0 {
			server.AffinitySeconds = int32(s.Timeout)
		}
		out[Key{At: netip.AddrPortFrom(s.Address, s.Port), Protocol: name}] = server
	}
	return out, nil
}

// CreateServer implements Kernel.
func (m *machine) CreateServer(key Key, s Server) error {
	return m.client.CreateService(m.service(key, s))
}

// UpdateServer implements Kernel.
func (m *machine) UpdateServer(key Key, s Server) error {
	return m.client.UpdateService(m.service(key, s))
}

// RemoveServer implements Kernel.
func (m *machine) RemoveServer(key Key) error { return m.client.RemoveService(m.named(key)) }

// Reals implements Kernel.
func (m *machine) Reals(key Key) (map[netip.AddrPort]Real, error) {
	all, err := m.client.Destinations(m.named(key))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out := map[netip.AddrPort]Real{}
	for _, d := range all {
		out[netip.AddrPortFrom(d.Address, d.Port)] = Real{Weight: d.Weight,
			Connections: d.ActiveConnections + d.InactiveConnections}
	}
	return out, nil
}

// CreateReal implements Kernel.
func (m *machine) CreateReal(key Key, real netip.AddrPort, weight uint32) error {
	return m.client.CreateDestination(m.named(key), m.destination(real, weight))
}

// UpdateReal implements Kernel.
func (m *machine) UpdateReal(key Key, real netip.AddrPort, weight uint32) error {
	return m.client.UpdateDestination(m.named(key), m.destination(real, weight))
}

// RemoveReal implements Kernel.
func (m *machine) RemoveReal(key Key, real netip.AddrPort) error {
	return m.client.RemoveDestination(m.named(key), m.destination(real, 0))
}

// Addresses implements Kernel. The interface stays down: its addresses are the node's own all the same, and nothing is
// sent through it.
func (m *machine) Addresses() (onLink, elsewhere []netip.Addr, err error) {
	link, err := netlink.LinkByName(Link)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		err = netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: Link}})
		if err == nil || errors.Is(err, unix.EEXIST) {
			link, err = netlink.LinkByName(Link)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return m.addresses(link)
}

// addresses returns those of the link, and those of all others.
func (m *machine) addresses(link netlink.Link) (onLink, elsewhere []netip.Addr, err error) {
	family := netlink.FAMILY_V4
	if m.six {
		family = netlink.FAMILY_V6
	}
	all, err := netdump.Addresses(nil, family)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range all {
		ip, ok := netip.AddrFromSlice(a.IP)
		switch ip = ip.Unmap(); {
		case !ok || ip.IsLinkLocalUnicast():
		case a.LinkIndex == link.Attrs().Index:
			onLink = append(onLink, ip)
		default:
			elsewhere = append(elsewhere, ip)
		}
	}
	return onLink, elsewhere, nil
}

// onLink is an address as it stands on Link. An IPv6 one is not looked for on the link before it is used.
func (m *machine) onLink(a netip.Addr) (netlink.Link, *netlink.Addr, error) {
	link, err := netlink.LinkByName(Link)
	if err != nil {
		return nil, nil, err
	}
	out := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if m.six {
		out.Flags = unix.IFA_F_NODAD
	}
	return link, out, nil
}

// Bind implements Kernel.
func (m *machine) Bind(a netip.Addr) error {
	link, address, err := m.onLink(a)
	if err == nil {
		err = netlink.AddrAdd(link, address)
	}
	if err != nil {
		return fmt.Errorf("add %s to %s: %w", a, Link, err)
	}
	return nil
}

// Unbind implements Kernel.
func (m *machine) Unbind(a netip.Addr) error {
	link, address, err := m.onLink(a)
	if err == nil {
		err = netlink.AddrDel(link, address)
	}
	if err != nil {
		return fmt.Errorf("remove %s from %s: %w", a, Link, err)
	}
	return nil
}

// Remove takes away what a proxy's IPVS mode made, of both families, if it is there: virtual servers, the interface
// with the addresses, packet rules. Virtual servers of others stay.
func Remove(ctx context.Context) error {
	link, err := netlink.LinkByName(Link)
	if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf("find the interface %s: %w", Link, err)
	}
	var errs []error
	if link != nil {
		for _, six := range []bool{false, true} {
			errs = append(errs, removeServers(ctx, link, six))
		}
		if errs = append(errs, netlink.LinkDel(link)); errors.Join(errs...) != nil {
			return fmt.Errorf("remove the virtual servers of Services: %w", errors.Join(errs...))
		}
	}
	return nftables.Remove(ctx, tableName)
}

// removeServers removes a family's virtual servers at addresses of the interface and in the record. A kernel without
// IPVS has none.
func removeServers(ctx context.Context, link netlink.Link, six bool) error {
	m, err := openMachine(six)
	if err != nil {
		return nil
	}
	tool, err := nftables.Open(six, tableName)
	if err != nil {
		return err
	}
	addresses, _, err := m.addresses(link)
	if err != nil {
		return err
	}
	there, err := m.Servers()
	if err != nil {
		return err
	}
	t := New(m, tool, six, Config{}, slog.New(slog.DiscardHandler))
	if err := t.recall(ctx, there, addresses); err != nil {
		return err
	}
	var errs []error
	for key := range t.mine {
		errs = append(errs, t.forget(key, there))
	}
	return errors.Join(errs...)
}
