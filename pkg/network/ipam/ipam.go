// Package ipam is a CNI plug-in for addresses. It takes the configuration of host-local, keeps its files
// (https://www.cni.dev/plugins/current/ipam/host-local/), and also remembers which pod had which addresses. A pod whose
// sandbox is made again, for example after a restart of the node, gets its addresses again. A new pod gets addresses
// that were never used, or that have been free for the longest time.
package ipam

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/disk"
)

// defaultDataDir is host-local's, too.
const defaultDataDir = "/var/lib/cni/networks"

// podArgs are what container runtimes of Kubernetes say in CNI_ARGS.
type podArgs struct {
	types.CommonArgs
	//nolint:revive,staticcheck // the library takes the argument's name from the field's
	K8S_POD_UID types.UnmarshallableString
}

// call is one call of the plug-in. The network's lock is held from open to close: all that is read and written of the
// network is one step.
type call struct {
	config  *allocator.IPAMConfig
	version string // of the specification, for the answer
	pod     string // its UID, "" if the runtime does not say it
	store   *disk.Store
	known   memory
	file    string // where known is
}

func open(args *skel.CmdArgs) (*call, error) {
	config, version, err := allocator.LoadIPAMConfig(args.StdinData, args.Args)
	if err != nil {
		return nil, err
	}
	var pod podArgs
	if err := types.LoadArgs(args.Args, &pod); err != nil {
		return nil, err
	}
	c := &call{config: config, version: version, pod: string(pod.K8S_POD_UID)}
	dir := config.DataDir
	if dir == "" {
		dir = defaultDataDir
	}
	if c.store, err = disk.New(config.Name, dir); err != nil {
		return nil, err
	}
	if err := c.store.Lock(); err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	c.file = filepath.Join(dir, config.Name+".pods.json")
	if c.known, err = readMemory(c.file); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *call) close() error { return errors.Join(c.store.Unlock(), c.store.Close()) }

// Add gives the container an address of each range set and prints them as the result.
func Add(args *skel.CmdArgs) error {
	c, err := open(args)
	if err != nil {
		return err
	}
	result := &current.Result{CNIVersion: current.ImplementedSpecVersion, Routes: c.config.Routes}
	if result.IPs, err = c.add(args.ContainerID, args.IfName); err != nil {
		// Give back what was taken from some of the range sets.
		return errors.Join(err, c.store.ReleaseByID(args.ContainerID, args.IfName), c.close())
	}
	if err := c.close(); err != nil {
		return err
	}
	return types.PrintResult(result, c.version)
}

// add takes the addresses and writes down who has them.
func (c *call) add(container, iface string) ([]*current.IPConfig, error) {
	asked := c.config.IPArgs
	var taken []*current.IPConfig
	var addresses []netip.Addr
	for i := range c.config.Ranges {
		ip, err := c.take(i, container, iface, &asked)
		if err != nil {
			return nil, err
		}
		address, _ := netip.AddrFromSlice(ip.Address.IP)
		taken, addresses = append(taken, ip), append(addresses, address.Unmap())
	}
	if len(asked) > 0 {
		return nil, fmt.Errorf("requested addresses %v are in no range of the network", asked)
	}
	if c.pod == "" {
		return taken, nil
	}
	c.known.note(c.pod, addresses)
	return taken, c.known.write(c.file)
}

// take takes an address of a range set: the one that is asked for, or the pod's, or one that no pod had, or the one
// that was last used longest ago.
func (c *call) take(i int, container, iface string, asked *[]net.IP) (*current.IPConfig, error) {
	ranges := &c.config.Ranges[i]
	any := allocator.NewIPAllocator(ranges, lockedStore{Store: c.store}, i)
	for n, ip := range *asked {
		if ranges.Contains(ip) {
			*asked = append((*asked)[:n:n], (*asked)[n+1:]...)
			return any.Get(container, iface, ip)
		}
	}
	for _, address := range c.known.of(c.pod) {
		if ip := net.IP(address.AsSlice()); ranges.Contains(ip) {
			if taken, err := any.Get(container, iface, ip); err == nil {
				return taken, nil
			} // somebody else has it
		}
	}
	fresh := allocator.NewIPAllocator(ranges, lockedStore{Store: c.store, spared: c.known.addresses()}, i)
	taken, err := fresh.Get(container, iface, nil)
	if err == nil {
		return taken, nil
	}
	for address := range c.known.oldestFirst() {
		if ip := net.IP(address.AsSlice()); ranges.Contains(ip) {
			if taken, err := any.Get(container, iface, ip); err == nil {
				return taken, nil
			} // its pod is there
		}
	}
	return nil, err
}

// Check says whether the container has its addresses still.
func Check(args *skel.CmdArgs) error {
	c, err := open(args)
	if err != nil {
		return err
	}
	if !c.store.FindByID(args.ContainerID, args.IfName) {
		err = fmt.Errorf("the container %s has no address", args.ContainerID)
	}
	return errors.Join(err, c.close())
}

// Del frees the container's addresses. It is no error if it has none (the specification asks for that), and they stay
// remembered as the pod's, from now on as those that were used last. Where that cannot be written down they are free
// all the same: on a full disk no pod could end otherwise, and none would give its room back.
func Del(args *skel.CmdArgs) error {
	c, err := open(args)
	if err != nil {
		return err
	}
	err = c.store.ReleaseByID(args.ContainerID, args.IfName)
	if addresses := c.known.of(c.pod); err == nil && addresses != nil {
		c.known.note(c.pod, addresses)
		_ = c.known.write(c.file) // only the order in which addresses are given again is lost
	}
	return errors.Join(err, c.close())
}

// lockedStore is host-local's store while its lock is held, without some addresses.
type lockedStore struct {
	*disk.Store
	spared map[netip.Addr]bool
}

// Lock does nothing: the call holds the lock.
func (s lockedStore) Lock() error { return nil }

// Unlock does nothing.
func (s lockedStore) Unlock() error { return nil }

// Reserve takes ip; taken is false if somebody has it or it is spared.
func (s lockedStore) Reserve(id, iface string, ip net.IP, rangeID string) (taken bool, err error) {
	if address, ok := netip.AddrFromSlice(ip); ok && s.spared[address.Unmap()] {
		return false, nil
	}
	return s.Store.Reserve(id, iface, ip, rangeID)
}
