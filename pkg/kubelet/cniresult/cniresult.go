// Package cniresult reads when the network of a sandbox was made, from what the container runtime leaves behind.
//
// Runtimes call CNI plug-ins inside of RunPodSandbox, and no answer of theirs has a time. But CNI's library, which all
// of them use, writes a file when the last plug-in of a network has answered, so the file's time is the end. It names
// the network namespace, which runtimes make just before, and the kernel keeps the time at which that appeared.
package cniresult

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// Default is the directory that CNI's library uses.
	Default = "/var/lib/cni/results"
	// device is the pod's device in the network whose addresses are the pod's. Others, such as loopback, have files of
	// their own.
	device = "eth0"
	// maxFile bounds a file: a result has some KiB.
	maxFile = 1 << 20
)

// Dir is a directory of results.
type Dir string

// Times returns when the network of a sandbox began to be made, and when it was ready. ok is false if nothing says so:
// a sandbox has the machine's network, or its runtime keeps no such files.
func (d Dir) Times(sandbox string) (begun, ended time.Time, ok bool) {
	if sandbox == "" || strings.ContainsAny(sandbox, `/\*?[`) {
		return begun, ended, false
	}
	files, err := filepath.Glob(filepath.Join(string(d), "*-"+sandbox+"-"+device))
	if err != nil || len(files) != 1 {
		return begun, ended, false
	}
	namespace, ended, err := read(files[0])
	if err != nil {
		return begun, ended, false
	}
	made, err := os.Stat(namespace)
	if err != nil {
		return begun, ended, false
	}
	begun = made.ModTime()
	return begun, ended, !ended.Before(begun)
}

// read returns the network namespace that a result is for, and when it was written.
func read(path string) (namespace string, at time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", at, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", at, err
	}
	var kept struct {
		NetNS  string `json:"netns"` // since version 1.2 of the library
		Result struct {
			Interfaces []struct {
				Sandbox string `json:"sandbox"`
			} `json:"interfaces"`
		} `json:"result"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxFile)).Decode(&kept); err != nil {
		return "", at, err
	}
	namespace = kept.NetNS
	for _, i := range kept.Result.Interfaces { // those of the machine are in none
		namespace = cmp.Or(namespace, i.Sandbox)
	}
	if !filepath.IsAbs(namespace) {
		return "", at, errors.New("the result names no network namespace")
	}
	return namespace, info.ModTime(), nil
}
