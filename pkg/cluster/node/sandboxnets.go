package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// sandboxSpaces has a mount for each network namespace that containerd made for a sandbox, with a name that begins
	// with "cni-".
	sandboxSpaces = "/run/netns"
	// sandboxAddresses has a directory per network, in which host-local and bonsai-ipam keep a file per address. Its
	// first line is the ID of the sandbox.
	sandboxAddresses = "/var/lib/cni/networks"
	// sandboxResults has a file of JSON for each network of a sandbox: what its plug-ins answered, which they get again
	// when the sandbox goes. containerd writes it and does not wait for the disk.
	sandboxResults = "/var/lib/cni/results"
)

// clearLostNetworks removes the network namespaces, and frees the addresses, of sandboxes without a task. containerd
// makes the network of a sandbox before it records the sandbox; if it is killed in between, nobody else would ever
// remove the network, and the addresses would run out.
//
// It must run while containerd is down, which could be making a sandbox. A sandbox that containerd has on record and
// that lost its task is in no danger: the kubelet removes it, and the removal accepts that its network is gone.
func clearLostNetworks(tasks, spaces, addresses string, log *slog.Logger) error {
	ids, used, err := networksInUse(tasks)
	if err != nil {
		return err // it is better to leave too much than to give an address out twice
	}
	var errs []error
	mounts, _ := filepath.Glob(filepath.Join(spaces, "cni-*"))
	for _, path := range mounts {
		if used[filepath.Base(path)] {
			continue
		}
		log.Info("removing the network namespace of a sandbox without a task", "path", path)
		// EINVAL: the file was made and the namespace not yet mounted.
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", path, err))
			continue
		}
		errs = append(errs, os.Remove(path))
	}
	// At a node's start /run is new, so there is no task, and all addresses of its earlier life are freed here.
	files, _ := filepath.Glob(filepath.Join(addresses, "*", "*"))
	for _, path := range files {
		if _, err := netip.ParseAddr(filepath.Base(path)); err != nil {
			continue
		}
		data, err := os.ReadFile(path)
		id, _, _ := strings.Cut(string(bytes.TrimSpace(data)), "\n")
		if id = strings.TrimSpace(id); err != nil || ids[id] {
			continue
		}
		log.Info("freeing the address of a sandbox without a task", "path", path, "sandbox", id)
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// networksInUse returns the existing tasks, and the file names of their network namespaces.
func networksInUse(tasks string) (ids, spaces map[string]bool, err error) {
	ids, spaces = map[string]bool{}, map[string]bool{}
	entries, err := os.ReadDir(tasks)
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, fmt.Errorf("list containerd's tasks: %w", err)
	}
	for _, e := range entries {
		ids[e.Name()] = true
		data, err := os.ReadFile(filepath.Join(tasks, e.Name(), "config.json"))
		if err != nil {
			return nil, nil, fmt.Errorf("read what a task is: %w", err)
		}
		var spec struct {
			Linux struct {
				Namespaces []struct{ Type, Path string }
			}
		}
		if err := json.Unmarshal(data, &spec); err != nil {
			return nil, nil, fmt.Errorf("read what task %s is: %w", e.Name(), err)
		}
		for _, ns := range spec.Linux.Namespaces {
			if ns.Type == "network" {
				spaces[filepath.Base(ns.Path)] = true
			}
		}
	}
	return ids, spaces, nil
}

// removeBrokenResults removes what a loss of power has left half written of the plug-ins' answers. containerd cannot
// remove a sandbox while it finds such a file; without one, it asks the plug-ins to undo what they find. Like
// clearLostNetworks it must run while containerd is down.
func removeBrokenResults(results string, log *slog.Logger) error {
	var errs []error
	files, _ := filepath.Glob(filepath.Join(results, "*"))
	for _, path := range files {
		if data, err := os.ReadFile(path); err != nil || json.Valid(data) {
			continue
		}
		log.Info("removing the broken answer of a network plug-in", "path", path)
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}
