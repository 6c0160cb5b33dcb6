package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/netip"
	"os"
	"slices"
)

// mostPods bounds what is remembered of a network: ten times the pods that a kubelet runs by default.
const mostPods = 1100

// memory is who had which addresses, the pod that used its own longest ago first. No address is in it twice: whoever
// has it last.
type memory struct {
	Pods []pod `json:"pods"`
}

// pod is one that has or had addresses, one of each family.
type pod struct {
	UID       string       `json:"uid"`
	Addresses []netip.Addr `json:"addresses"`
}

// of are the addresses that the pod had, nil if none are known.
func (m *memory) of(uid string) []netip.Addr {
	for _, p := range m.Pods {
		if p.UID == uid {
			return p.Addresses
		}
	}
	return nil
}

// note says that the pod has addresses, or has had them until now. Whoever had one of them before loses all of its own:
// where one is not to be had again, nothing is won by the other.
func (m *memory) note(uid string, addresses []netip.Addr) {
	m.Pods = slices.DeleteFunc(m.Pods, func(p pod) bool {
		return p.UID == uid || slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool {
			return slices.Contains(addresses, a)
		})
	})
	m.Pods = append(m.Pods, pod{uid, addresses})
	m.Pods = m.Pods[max(0, len(m.Pods)-mostPods):]
}

// addresses are all that are remembered.
func (m *memory) addresses() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for a := range m.oldestFirst() {
		all[a] = true
	}
	return all
}

// oldestFirst are all that are remembered, those that were last used longest ago first.
func (m *memory) oldestFirst() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, p := range m.Pods {
			for _, a := range p.Addresses {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// readMemory reads the file at path. One that is not there, or cannot be understood, is an empty memory: pods then get
// other addresses, which is better than none.
func readMemory(path string) (memory, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return memory{}, nil
	}
	if err != nil {
		return memory{}, fmt.Errorf("read who had which address: %w", err)
	}
	return parseMemory(data), nil
}

func parseMemory(data []byte) memory {
	var read, m memory
	if json.Unmarshal(data, &read) != nil {
		return memory{}
	}
	for _, p := range read.Pods {
		if p.UID != "" && len(p.Addresses) > 0 && !slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool {
			return !a.IsValid()
		}) {
			m.note(p.UID, p.Addresses)
		}
	}
	return m
}

// write replaces the file at path, whole or not at all. The network's lock keeps others from it.
func (m *memory) write(path string) error {
	data, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new") // it may be there, and takes room
		return fmt.Errorf("write who had which address: %w", err)
	}
	return nil
}
