package encryption

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
)

// Record returns what a snapshot says about the keys of the cluster's file: their names and, with the bytes, the keys
// themselves. It is nil in a cluster without keys, and an error in one that has lost them. All keys of the file may be
// needed: a rotation may be under way.
func Record(c plan.Config, bytes bool) ([]byte, error) {
	if !componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		if bytes {
			return nil, fmt.Errorf("--with-encryption-keys: this cluster has no keys of its own (%s)",
				Command(c.Layout(), "status"))
		}
		return nil, nil
	}
	keys, err := Read(c.Layout())
	if err == nil && bytes {
		return yaml.Marshal(keyList{Keys: keys})
	}
	if err != nil && (bytes || !errors.Is(err, ErrChanged)) {
		return nil, err
	}
	named, err := anyNames(c.Layout())
	if err != nil {
		return nil, err
	}
	slices.Sort(named)
	list := keyList{Keys: []Key{}}
	for _, name := range slices.Compact(named) {
		list.Keys = append(list.Keys, Key{Name: name})
	}
	return yaml.Marshal(list)
}

// NeededBy returns the snapshots that need keys, by the names of the keys.
func NeededBy(l plan.Layout) (map[string][]string, error) {
	entries, err := os.ReadDir(l.Snapshots())
	if err != nil {
		return nil, host.IgnoreMissing(err)
	}
	needed := map[string][]string{}
	for _, e := range entries {
		keys, err := readList(filepath.Join(l.Snapshots(), e.Name(), filepath.Base(l.SnapshotKeys(e.Name()))), false)
		if errors.Is(err, syscall.ENOTDIR) {
			continue // a file of the user's
		}
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			needed[k.Name] = append(needed[k.Name], e.Name())
		}
	}
	return needed, nil
}

// Missing returns an error that names the keys that a snapshot needs and nobody here has: neither the cluster nor the
// snapshot itself.
func Missing(l plan.Layout, snapshot string) error {
	_, err := withNeeded(l, snapshot)
	return err
}

// Admit adds the keys that a snapshot needs to the cluster's file. What writes stays the first key. It can be repeated,
// and comes before the snapshot is in place.
func Admit(l plan.Layout, snapshot string) error {
	keys, err := withNeeded(l, snapshot)
	if err != nil || len(keys) == 0 {
		return err
	}
	return write(l, keys)
}

// withNeeded returns the keys of the cluster's file, and behind them those that a snapshot needs beyond these; none if
// it needs no key, and then the file, which may be anything, is not read.
func withNeeded(l plan.Layout, snapshot string) ([]Key, error) {
	needed, err := readList(l.SnapshotKeys(snapshot), false)
	if err != nil || len(needed) == 0 {
		return nil, err
	}
	kept, err := Kept(l)
	if err != nil {
		return nil, err
	}
	keys, err := Read(l)
	if errors.Is(err, ErrChanged) { // it is the user's, who keeps what it needs
		has, unreadable := anyNames(l)
		lacks := func(k Key) bool { return !slices.Contains(has, k.Name) }
		if unreadable == nil && !slices.ContainsFunc(needed, lacks) {
			return nil, nil
		}
	}
	if host.IgnoreMissing(err) != nil {
		return nil, err
	}
	var missing []string
	for _, k := range needed {
		switch has, there := find(k.Name, keys, kept); {
		case there && k.Secret != "" && k.Secret != has.Secret:
			return nil, fmt.Errorf("%s: the key %s is another one than this cluster's of that name", l.SnapshotKeys(snapshot),
				k.Name)
		case there:
			k = has
		case k.Secret == "":
			missing = append(missing, k.Name)
			continue
		}
		if _, there := find(k.Name, keys); !there {
			keys = append(keys, k)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the Secrets of the snapshot %s are encrypted by %s, which this cluster does not have, so nobody could read them. Where the snapshot was made, save it with bonsai snapshot save --with-encryption-keys; or copy the key from encryption/ of that cluster's data directory into %s",
			snapshot, strings.Join(missing, " and "), l.SnapshotKeys(snapshot))
	}
	return keys, nil
}

// retire moves keys of the cluster's file that are not the first to the kept ones, in this order: a key is never in
// neither.
func retire(l plan.Layout) error {
	keys, err := Read(l)
	if err != nil {
		return err
	}
	kept, err := Kept(l)
	if err != nil {
		return err
	}
	for _, k := range keys[1:] {
		if _, there := find(k.Name, kept); !there {
			kept = append(kept, k)
		}
	}
	if len(kept) > 0 {
		if err := writeList(l.KeptKeys(), kept); err != nil {
			return err
		}
	}
	return write(l, keys[:1])
}

// forget removes the kept keys that no snapshot needs.
func forget(l plan.Layout) error {
	kept, err := Kept(l)
	if err != nil {
		return err
	}
	needed, err := NeededBy(l)
	if err != nil {
		return err
	}
	kept = slices.DeleteFunc(kept, func(k Key) bool { return len(needed[k.Name]) == 0 })
	if len(kept) == 0 {
		return host.IgnoreMissing(os.Remove(l.KeptKeys()))
	}
	return writeList(l.KeptKeys(), kept)
}
