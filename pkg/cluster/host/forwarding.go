package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Forwarding switches a setting of the kernel on while a cluster of this machine needs it. When the last one goes, the
// setting gets its earlier value back. The record of that is a file in /run: a reboot removes it, and resets the
// setting, too.
type Forwarding struct {
	setting string // the kernel's file: "0" or "1"
	record  string // one for each network namespace, as the setting is
	lock    string // never removed: two processes could hold locks of two files of one name
}

// forwardingRecord is the record's content, as JSON.
type forwardingRecord struct {
	// Before is the value of the setting when the first cluster came.
	Before string
	// Rules are the rules of the host's chain FORWARD at that time. If they differ at the end, something else, such
	// as Docker, has begun to forward meanwhile: the setting is its own now, and stays.
	Rules string
	// Clusters are the marks of the clusters that need the setting.
	Clusters []string
}

// IPv4Forwarding returns the setting net.ipv4.ip_forward of this process's network namespace.
func IPv4Forwarding() (Forwarding, error) {
	namespace, err := os.Readlink("/proc/thread-self/ns/net") // net:[4026531840]
	if err != nil {
		return Forwarding{}, fmt.Errorf("find the network namespace: %w", err)
	}
	return Forwarding{setting: "/proc/sys/net/ipv4/ip_forward",
		record: "/run/bonsai-forwarding-" + strings.Trim(namespace, "net:[]"),
		lock:   "/run/bonsai-forwarding.lock"}, nil
}

// Begin switches the setting on for the cluster with the mark. rules are those of the host's chain FORWARD. The
// record is written first: a setting that is on without a record would stay on for ever.
func (f Forwarding) Begin(mark, rules string) error {
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

// Restore switches the setting on again if somebody has switched it off, and reports whether that was so. The caller's
// cluster needs it (Begin).
func (f Forwarding) Restore() (was bool, err error) {
	now, err := os.ReadFile(f.setting)
	if err != nil || strings.TrimSpace(string(now)) != "0" {
		return false, err
	}
	return true, os.WriteFile(f.setting, []byte("1"), 0)
}

// End notes that the cluster with the mark no longer needs the setting. rules are those of the host's chain FORWARD,
// without the cluster's.
func (f Forwarding) End(mark, rules string) error {
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

// change reads the record, lets do change it, and writes it, or removes it when no cluster is left. It holds a lock
// meanwhile: clusters start and end beside each other.
func (f Forwarding) change(do func(*forwardingRecord) error) error {
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
		return IgnoreMissing(os.Remove(f.record))
	}
	if data, err = json.Marshal(r); err != nil {
		return err
	}
	return WriteFile(f.record, data)
}
