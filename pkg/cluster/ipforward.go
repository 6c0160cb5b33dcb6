package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// forwarding switches a setting of the kernel on while clusters of this machine need it, and back to what it was when the last of them goes.
// Its record is a file that a reboot removes, as it does the setting.
type forwarding struct {
	setting string // the kernel's file: "0" or "1"
	record  string // one for each network namespace, as the setting is
	lock    string // stays, as machineLock does
}

// forwardingRecord is what the record holds, as JSON.
type forwardingRecord struct {
	// Before is what the setting was when the first cluster came.
	Before string
	// Rules are those of the host's chain FORWARD at that time. Where they are others at the end, something else (Docker, for one) has begun
	// to forward meanwhile: the setting is its own now, and stays.
	Rules string
	// Clusters are the marks of those that need the setting.
	Clusters []string
}

// hostForwarding is the forwarding of IPv4 in this process's network namespace.
func hostForwarding() (forwarding, error) {
	namespace, err := os.Readlink("/proc/thread-self/ns/net") // net:[4026531840]
	if err != nil {
		return forwarding{}, fmt.Errorf("find the network namespace: %w", err)
	}
	return forwarding{setting: "/proc/sys/net/ipv4/ip_forward", record: "/run/bonsai-forwarding-" + strings.Trim(namespace, "net:[]"),
		lock: "/run/bonsai-forwarding.lock"}, nil
}

// begin switches the setting on for the cluster of that mark; rules are those of the host's chain FORWARD. The record comes first: what is
// switched on and not recorded would stay on.
func (f forwarding) begin(mark, rules string) error {
	err := f.change(func(r *forwardingRecord) error {
		now, err := os.ReadFile(f.setting)
		if err != nil {
			return err
		}
		if len(r.Clusters) == 0 {
			r.Before, r.Rules = strings.TrimSpace(string(now)), rules
		}
		if !slices.Contains(r.Clusters, mark) {
			r.Clusters = append(r.Clusters, mark)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(f.setting, []byte("1"), 0)
}

// end says that the cluster of that mark needs the setting no more; rules are those of the host's chain FORWARD, without the cluster's.
func (f forwarding) end(mark, rules string) error {
	if _, err := os.Stat(f.record); errors.Is(err, os.ErrNotExist) {
		return nil // no cluster needed it
	}
	return f.change(func(r *forwardingRecord) error {
		i := slices.Index(r.Clusters, mark)
		if i < 0 {
			return nil
		}
		r.Clusters = slices.Delete(r.Clusters, i, i+1)
		if len(r.Clusters) > 0 || r.Before == "1" || r.Rules != rules {
			return nil
		}
		return os.WriteFile(f.setting, []byte(r.Before), 0)
	})
}

// change reads the record, has do change it, and writes it, or removes it when no cluster is left. Nobody else does so meanwhile.
func (f forwarding) change(do func(*forwardingRecord) error) error {
	lock, err := os.OpenFile(f.lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil { // held for as long as it takes to write two files
		return fmt.Errorf("lock %s: %w", f.lock, err)
	}
	var r forwardingRecord
	data, err := os.ReadFile(f.record)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", f.record, err)
	}
	if err := do(&r); err != nil {
		return err
	}
	if len(r.Clusters) == 0 {
		return ignoreMissing(os.Remove(f.record))
	}
	if data, err = json.Marshal(r); err != nil {
		return err
	}
	return writeFile(f.record, data)
}
