package cpu

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/utils/cpuset"
)

// checkpoint is the content of the file cpu_manager_state, in the format that other kubelets and tools read.
type checkpoint struct {
	PolicyName string `json:"policyName"`
	// DefaultCPUSet are the CPUs that are shared.
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      sum                          `json:"checksum"`
}

type sum uint64

// sum returns the checksum that Kubernetes' kubelet computes: it hashes the text of its own Go types, so ours are
// renamed in it.
func (c checkpoint) sum() sum {
	c.Checksum = 0
	h := fnv.New32a()
	text := strings.NewReplacer("cpu.checkpoint", "state.CPUManagerCheckpoint", "cpu.sum",
		"checksum.Checksum").Replace(dump.ForHash(&c))
	h.Write([]byte(text))
	return sum(h.Sum32())
}

// save stores which containers have which CPUs. The caller holds mu. The node takes a pod only if this succeeds:
// otherwise two containers could have the same CPU after a crash.
func (m *Manager) save() error {
	c := checkpoint{PolicyName: m.cfg.Policy, Entries: map[string]map[string]string{}}
	exclusive := 0
	for uid, containers := range m.given {
		c.Entries[string(uid)] = map[string]string{}
		for name, s := range containers {
			c.Entries[string(uid)][name] = s.String()
			exclusive += s.Size()
		}
	}
	if m.cfg.Policy == Static {
		c.DefaultCPUSet = m.shared().String()
		m.cfg.Metrics.CPUs(m.shared().Size(), exclusive)
	}
	c.Checksum = c.sum()
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode which CPUs pods have: %w", err)
	}
	return m.file.Write(data)
}

// load reads which containers had which CPUs. The messages tell the administrator how to go on; they are upstream's.
// Every difference is an error that stops the kubelet. The running containers keep their CPUs in any case; a guess
// would give these to others, too.
func (m *Manager) load() error {
	data, err := m.file.Read()
	if err != nil || data == nil {
		return err
	}
	c := checkpoint{Entries: map[string]map[string]string{}}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode which CPUs pods had: %w", err)
	}
	help := fmt.Sprintf("please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet", filepath.Join(m.file.Dir, m.file.Name))
	switch {
	case c.sum() != c.Checksum:
		return fmt.Errorf("could not restore state from checkpoint: checkpoint is corrupted, %s", help)
	case c.PolicyName != m.cfg.Policy:
		return fmt.Errorf("could not restore state from checkpoint: configured policy %q differs from state checkpoint policy %q, %s", m.cfg.Policy, c.PolicyName, help)
	}
	known, err := cpuset.Parse(c.DefaultCPUSet)
	if err != nil {
		return fmt.Errorf("could not parse default cpu set %q: %w", c.DefaultCPUSet, err)
	}
	for uid, containers := range c.Entries {
		m.given[types.UID(uid)] = map[string]cpuset.CPUSet{}
		for name, text := range containers {
			s, err := cpuset.Parse(text)
			if err != nil {
				return fmt.Errorf("could not parse cpuset %q for container %q in pod %q: %w", text, name, uid, err)
			}
			m.given[types.UID(uid)][name] = s
			known = known.Union(s)
		}
	}
	all := m.all
	if m.cfg.strictReservation {
		all = all.Difference(m.reserved)
	}
	if m.cfg.Policy == Static && !known.Equals(all) {
		return fmt.Errorf("current set of available CPUs %q doesn't match with CPUs in state %q, %s", all, known, help)
	}
	return nil
}
