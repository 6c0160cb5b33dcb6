package memory

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/dump"
)

// checkpoint is the content of the file memory_manager_state, as other kubelets and tools read it.
type checkpoint struct {
	PolicyName   string                     `json:"policyName"`
	MachineState NUMANodeMap                `json:"machineState"`
	Entries      ContainerMemoryAssignments `json:"entries,omitempty"`
	Checksum     sum                        `json:"checksum"`
}

type sum uint64

// sum is the checksum that a kubelet finds for it: of the text of its own types.
func (c checkpoint) sum() sum {
	c.Checksum = 0
	h := fnv.New32a()
	text := strings.NewReplacer("memory.checkpoint", "state.MemoryManagerCheckpoint", "memory.sum", "checksum.Checksum",
		"memory.", "state.").Replace(dump.ForHash(&c))
	h.Write([]byte(text))
	return sum(h.Sum32())
}

// save writes down who has what; m is locked.
func (m *Manager) save() error {
	c := checkpoint{PolicyName: m.cfg.Policy, MachineState: NUMANodeMap{}, Entries: m.given}
	if m.cfg.Policy == Static {
		c.MachineState = m.state()
	}
	c.Checksum = c.sum()
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode which memory pods have: %w", err)
	}
	return m.file.Write(data)
}

// load reads who had what. Every difference is an error that stops the kubelet, for the administrator to drain the
// node.
func (m *Manager) load() error {
	data, err := m.file.Read()
	if err != nil || data == nil {
		return err
	}
	c := checkpoint{Entries: ContainerMemoryAssignments{}}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode which memory pods had: %w", err)
	}
	help := fmt.Sprintf("please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", filepath.Join(m.file.Dir, m.file.Name))
	switch {
	case c.sum() != c.Checksum:
		return fmt.Errorf("could not restore state from checkpoint: checkpoint is corrupted, %s", help)
	case c.PolicyName != m.cfg.Policy:
		return fmt.Errorf("could not restore state from checkpoint: [memorymanager] configured policy %q differs from state checkpoint policy %q, %s", m.cfg.Policy, c.PolicyName, help)
	}
	if m.cfg.Policy == Static {
		if err := m.same(c); err != nil {
			return fmt.Errorf("%w, %s", err, help)
		}
	}
	m.given = c.Entries
	return nil
}

// same checks that the nodes have the memory that they had, and what is given of it.
func (m *Manager) same(c checkpoint) error {
	differs := func(why string) error {
		return fmt.Errorf("[memorymanager] the expected machine state is different from the real one: %s", why)
	}
	now, err := m.empty.with(c.Entries)
	if err != nil {
		return differs(err.Error())
	}
	if len(now) != len(c.MachineState) {
		return differs("other NUMA nodes")
	}
	for id, n := range now {
		was := c.MachineState[id]
		if was == nil || len(n.MemoryMap) != len(was.MemoryMap) {
			return differs(fmt.Sprintf("other memory on NUMA node %d", id))
		}
		for kind, t := range n.MemoryMap {
			if w := was.MemoryMap[kind]; w == nil || w.TotalMemSize != t.TotalMemSize ||
				w.SystemReserved != t.SystemReserved || w.Allocatable != t.Allocatable {
				return differs(fmt.Sprintf("other %s on NUMA node %d", kind, id))
			}
		}
	}
	return nil
}
