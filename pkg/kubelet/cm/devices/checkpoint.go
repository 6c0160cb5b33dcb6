package devices

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/dump"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
)

// checkpoint is the content of the file kubelet_internal_checkpoint, in the format that other kubelets and tools read.
type checkpoint struct {
	Data     checkpointData
	Checksum uint64
}

type checkpointData struct {
	PodDeviceEntries []podDevicesEntry
	// RegisteredDevices has the healthy devices by resource.
	RegisteredDevices map[string][]string
}

// podDevicesEntry is what one container has of one resource.
type podDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	// DeviceIDs are by the NUMA node that they are near to, -1 for devices that are near to none in particular.
	DeviceIDs devicesPerNUMA
	// AllocResp is the plug-in's answer, as protobuf.
	AllocResp []byte
}

type devicesPerNUMA map[int64][]string

// sum returns the checksum that Kubernetes' kubelet computes for such data: it hashes the text of its own Go types, so
// ours are renamed in it.
func (d checkpointData) sum() uint64 {
	h := fnv.New32a()
	text := strings.NewReplacer("devices.checkpointData", "checkpoint.checkpointData", "devices.podDevicesEntry",
		"checkpoint.PodDevicesEntry",
		"devices.devicesPerNUMA", "checkpoint.DevicesPerNUMA").Replace(dump.ForHash(d))
	h.Write([]byte(text))
	return uint64(h.Sum32())
}

// save stores which pods have what. The caller holds mu.
func (m *Manager) save() error {
	d := checkpointData{PodDeviceEntries: []podDevicesEntry{}, RegisteredDevices: map[string][]string{}}
	for name, k := range m.resources {
		d.RegisteredDevices[name] = sortedKeys(k.healthy())
	}
	for uid, containers := range m.pods {
		for container, has := range containers {
			for resource, a := range has {
				if a.response == nil {
					continue // its pod is not admitted yet
				}
				e, err := a.entry()
				if err != nil {
					return err
				}
				e.PodUID, e.ContainerName, e.ResourceName = string(uid), container, resource
				d.PodDeviceEntries = append(d.PodDeviceEntries, e)
			}
		}
	}
	slices.SortFunc(d.PodDeviceEntries, func(a, b podDevicesEntry) int {
		return strings.Compare(a.PodUID+"/"+a.ContainerName+"/"+a.ResourceName,
			b.PodUID+"/"+b.ContainerName+"/"+b.ResourceName)
	})
	data, err := json.Marshal(checkpoint{d, d.sum()})
	if err != nil {
		return fmt.Errorf("encode which devices pods have: %w", err)
	}
	return m.file.Write(data)
}

// entry encodes an allocation. A device near to several nodes stands under each of them; load joins them again.
func (a *allocation) entry() (podDevicesEntry, error) {
	r, err := proto.Marshal(a.response)
	if err != nil {
		return podDevicesEntry{}, fmt.Errorf("encode a plug-in's answer: %w", err)
	}
	e := podDevicesEntry{AllocResp: r, DeviceIDs: devicesPerNUMA{}}
	for _, id := range a.ids {
		near := a.nodes[id].IDs()
		if len(near) == 0 {
			near = []int{-1}
		}
		for _, n := range near {
			e.DeviceIDs[int64(n)] = append(e.DeviceIDs[int64(n)], id)
		}
	}
	return e, nil
}

// load reads which pods had which devices. The resources of that time are known again, but without devices until their
// plug-ins are back: so a pod that asks for one fails, instead of being taken for one that needs no plug-in. New calls
// it before anything else uses the manager, so it takes no lock. What it read before an error stays.
func (m *Manager) load() error {
	data, err := m.file.Read()
	if err != nil || data == nil {
		return err
	}
	var c checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode which devices pods had: %w", err)
	}
	if sum := c.Data.sum(); sum != c.Checksum {
		return fmt.Errorf("checkpoint is corrupted: its checksum is %s, not %s", strconv.FormatUint(c.Checksum, 10),
			strconv.FormatUint(sum, 10))
	}
	for name := range c.Data.RegisteredDevices {
		m.resources[name] = &kind{goneAt: m.cfg.Now(), devices: map[string]device{}}
	}
	for _, e := range c.Data.PodDeviceEntries {
		a := &allocation{nodes: map[string]cm.Nodes{}, response: &pluginapi.ContainerAllocateResponse{}}
		if err := proto.Unmarshal(e.AllocResp, a.response); err != nil {
			return fmt.Errorf("decode a plug-in's answer: %w", err)
		}
		for n, ids := range e.DeviceIDs {
			for _, id := range ids {
				a.nodes[id] |= cm.NodesOf(int(n))
			}
		}
		a.ids = sortedKeys(a.nodes)
		m.give(types.UID(e.PodUID), e.ContainerName, e.ResourceName, a)
	}
	return nil
}
