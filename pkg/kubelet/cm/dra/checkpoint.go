package dra

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// checkpoint is the content of the file dra_manager_state, as other kubelets write it: Data is JSON once more.
//
// Data is text inside of JSON because the checksum is over exactly these bytes.
type checkpoint struct {
	Data     string
	Checksum uint64
}

type checkpointData struct {
	Kind               string       `json:"kind"`
	APIVersion         string       `json:"apiVersion"`
	ClaimInfoStateList []claimState `json:"ClaimInfoStateList"`
}

type claimState struct {
	ClaimUID, ClaimName, Namespace string
	PodUIDs                        map[string]struct{}
	DriverState                    map[string]driverState
}

type driverState struct{ Devices []deviceState }

type deviceState struct {
	PoolName, DeviceName string
	ShareID              *types.UID `json:",omitempty"`
	RequestNames         []string
	CDIDeviceIDs         []string
}

const (
	checkpointKind    = "DRACheckpoint"
	checkpointVersion = "checkpoint.dra.kubelet.k8s.io/v1"
)

// save writes down which pods use which claims, and their devices; m.mu is held. It is called before drivers are asked
// to prepare and after they answered, so that a kubelet that dies in between knows what to undo. Claims are sorted by
// UID, so that the same state gives the same bytes.
func (m *Manager) save() error {
	d := checkpointData{Kind: checkpointKind, APIVersion: checkpointVersion}
	for _, c := range m.claims {
		s := claimState{ClaimUID: string(c.uid), ClaimName: c.name, Namespace: c.namespace,
			PodUIDs: map[string]struct{}{}, DriverState: map[string]driverState{}}
		for uid := range c.pods {
			s.PodUIDs[string(uid)] = struct{}{}
		}
		for name, devices := range c.devices {
			var state driverState
			for _, v := range devices {
				state.Devices = append(state.Devices, deviceState{v.pool, v.name, v.share, v.requests, v.cdi})
			}
			s.DriverState[name] = state
		}
		d.ClaimInfoStateList = append(d.ClaimInfoStateList, s)
	}
	slices.SortFunc(d.ClaimInfoStateList, func(a, b claimState) int { return cmp.Compare(a.ClaimUID, b.ClaimUID) })
	inner, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode which claims are prepared: %w", err)
	}
	data, err := json.Marshal(checkpoint{string(inner), uint64(crc32.ChecksumIEEE(inner))})
	if err != nil {
		return fmt.Errorf("encode which claims are prepared: %w", err)
	}
	return m.file.Write(data)
}

// load reads the file of an earlier life. A damaged one is an error, because without it claims would stay prepared for
// ever. Loaded claims are not prepared: the drivers prepare them once more before a container starts, and answer the
// same.
func (m *Manager) load() error {
	data, err := m.file.Read()
	if err != nil || data == nil {
		return err
	}
	var c checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode which claims are prepared: %w", err)
	}
	if sum := uint64(crc32.ChecksumIEEE([]byte(c.Data))); sum != c.Checksum {
		return fmt.Errorf("checkpoint is corrupted: its checksum is %d, not %d", c.Checksum, sum)
	}
	var d checkpointData
	if err := json.Unmarshal([]byte(c.Data), &d); err != nil {
		return fmt.Errorf("decode which claims are prepared: %w", err)
	}
	if d.Kind != checkpointKind || d.APIVersion != checkpointVersion {
		return fmt.Errorf("unknown checkpoint %s %s", d.APIVersion, d.Kind)
	}
	for _, s := range d.ClaimInfoStateList {
		e := &claim{turn: make(chan struct{}, 1), uid: types.UID(s.ClaimUID), namespace: s.Namespace, name: s.ClaimName,
			pods: map[types.UID]bool{}, devices: map[string][]device{}}
		for uid := range s.PodUIDs {
			e.pods[types.UID(uid)] = true
		}
		for name, state := range s.DriverState {
			e.devices[name] = []device{}
			for _, v := range state.Devices {
				e.devices[name] = append(e.devices[name],
					device{v.PoolName, v.DeviceName, v.ShareID, v.RequestNames, v.CDIDeviceIDs})
			}
		}
		m.claims[e.uid] = e
	}
	return nil
}
