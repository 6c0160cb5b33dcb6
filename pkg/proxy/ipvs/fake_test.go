package ipvs_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/proxy/ipvs"
)

// fakeKernel obeys the contract of ipvs.Kernel: what breaks it is an error of the test.
type fakeKernel struct {
	t         *testing.T
	servers   map[ipvs.Key]ipvs.Server
	reals     map[ipvs.Key]map[netip.AddrPort]ipvs.Real
	addresses map[netip.Addr]bool
	elsewhere []netip.Addr
	// did are the changes, in order; fail is the error of all of them.
	did  []string
	fail error
	// refuses are real servers and addresses that the kernel does not take.
	refuses map[netip.Addr]bool
	// refusesServers are virtual servers that it does not take.
	refusesServers map[ipvs.Key]bool
}

func newFakeKernel(t *testing.T) *fakeKernel {
	t.Helper()
	return &fakeKernel{t: t, servers: map[ipvs.Key]ipvs.Server{}, addresses: map[netip.Addr]bool{},
		reals: map[ipvs.Key]map[netip.AddrPort]ipvs.Real{}}
}

// change notes a change, which is only right if ok.
func (f *fakeKernel) change(ok bool, format string, args ...any) error {
	f.t.Helper()
	what := fmt.Sprintf(format, args...)
	if f.fail != nil {
		return f.fail
	}
	if !ok {
		f.t.Errorf("the kernel cannot %s", what)
		return fmt.Errorf("cannot %s", what)
	}
	f.did = append(f.did, what)
	return nil
}

func (f *fakeKernel) Servers() (map[ipvs.Key]ipvs.Server, error) { return maps.Clone(f.servers), nil }

func (f *fakeKernel) CreateServer(k ipvs.Key, s ipvs.Server) error {
	if f.refusesServers[k] {
		return unix.EINVAL
	}
	_, there := f.servers[k]
	err := f.change(!there, "create %s", k.At)
	if err == nil {
		f.servers[k], f.reals[k] = s, map[netip.AddrPort]ipvs.Real{}
	}
	return err
}

func (f *fakeKernel) UpdateServer(k ipvs.Key, s ipvs.Server) error {
	_, there := f.servers[k]
	err := f.change(there, "update %s", k.At)
	if err == nil {
		f.servers[k] = s
	}
	return err
}

func (f *fakeKernel) RemoveServer(k ipvs.Key) error {
	_, there := f.servers[k]
	err := f.change(there, "remove %s", k.At)
	if err == nil {
		delete(f.servers, k)
		delete(f.reals, k)
	}
	return err
}

func (f *fakeKernel) Reals(k ipvs.Key) (map[netip.AddrPort]ipvs.Real, error) {
	if _, there := f.servers[k]; !there {
		f.t.Errorf("there is no %s to list", k.At)
	}
	return maps.Clone(f.reals[k]), nil
}

func (f *fakeKernel) CreateReal(k ipvs.Key, e netip.AddrPort, weight uint32) error {
	if f.refuses[e.Addr()] {
		return unix.EINVAL
	}
	_, there := f.reals[k][e]
	err := f.change(f.reals[k] != nil && !there, "create %s->%s", k.At, e)
	if err == nil {
		f.reals[k][e] = ipvs.Real{Weight: weight}
	}
	return err
}

func (f *fakeKernel) UpdateReal(k ipvs.Key, e netip.AddrPort, weight uint32) error {
	r, there := f.reals[k][e]
	err := f.change(there, "weigh %s->%s %d", k.At, e, weight)
	if err == nil {
		r.Weight = weight
		f.reals[k][e] = r
	}
	return err
}

func (f *fakeKernel) RemoveReal(k ipvs.Key, e netip.AddrPort) error {
	_, there := f.reals[k][e]
	err := f.change(there, "remove %s->%s", k.At, e)
	if err == nil {
		delete(f.reals[k], e)
	}
	return err
}

func (f *fakeKernel) Addresses() (onLink, elsewhere []netip.Addr, err error) {
	return slices.SortedFunc(maps.Keys(f.addresses), netip.Addr.Compare), f.elsewhere, nil
}

func (f *fakeKernel) Bind(a netip.Addr) error {
	if f.refuses[a] {
		return unix.EADDRNOTAVAIL
	}
	err := f.change(!f.addresses[a], "bind %s", a)
	if err == nil {
		f.addresses[a] = true
	}
	return err
}

func (f *fakeKernel) Unbind(a netip.Addr) error {
	err := f.change(f.addresses[a], "unbind %s", a)
	if err == nil {
		delete(f.addresses, a)
	}
	return err
}
