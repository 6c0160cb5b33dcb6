package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/safetext"
)

// Bounds of a directory: how many manifests count, their size together, the faults that one read logs, and how long a
// burst of changes is waited for.
const (
	maxManifests   = 1000
	maxTotal       = 10 << 20
	maxFaults      = 20
	settlePatience = 2 * time.Second
)

// Files reads static pods from a directory (or one file), at once when it changes and every Period.
type Files struct {
	Path string
	Node string
	// Period is the time between reads without a change, default 20 s.
	Period   time.Duration
	Defaults func(*corev1.Pod) error
	Log      *slog.Logger

	manifests
}

// Run reads until ctx ends.
func (f *Files) Run(ctx context.Context, h Handler) error {
	if f.Period <= 0 {
		f.Period = 20 * time.Second
	}
	var events <-chan fsnotify.Event
	var lost <-chan error
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		events, lost = w.Events, w.Errors
		err = w.Add(f.Path)
	}
	if err != nil {
		f.Log.Warn("static pods are read periodically only", "path", f.Path, "err", err)
	}
	ticker := time.NewTicker(f.Period)
	defer ticker.Stop()
	for {
		f.read(h)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if w != nil {
				if err := w.Add(f.Path); err != nil { // the directory may have been recreated
					f.Log.Debug("static pods' directory is not watched", "path", f.Path, "err", err)
				}
			}
		case <-events:
			settle(ctx, events)
		case <-lost: // the kernel has dropped changes; the watcher goes on once this is read
		}
	}
}

// settle waits until a burst of events is over, so that half-written files are not read; but no longer than
// settlePatience, or a file that is always written to would keep all others from being read.
func settle(ctx context.Context, events <-chan fsnotify.Event) {
	over := time.After(settlePatience)
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-events:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func (f *Files) read(h Handler) {
	defer f.tried.Store(true)
	now, err := f.load()
	if err != nil {
		f.Log.Error("static pods not read, keeping those known", "path", f.Path, "err", err)
		return
	}
	f.pass(now, h)
}

// load parses all manifests, in the order of their names. A file that cannot be parsed is logged and left out, and so
// is what is beyond the bounds; a directory that is missing has none.
func (f *Files) load() (map[types.UID]*corev1.Pod, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	pods, faults, total := map[types.UID]*corev1.Pod{}, 0, 0
	byName, byUID := map[string]string{}, map[types.UID]string{}
	fault := func(message string, args ...any) {
		if faults++; faults <= maxFaults {
			f.Log.Error(message, args...)
		}
	}
	for _, n := range names {
		data, err := readManifest(n)
		var pod *corev1.Pod
		if err == nil {
			if total += len(data); total > maxTotal {
				fault("the manifests of static pods are too large together, those from this one on are left out", "file", n,
					"bytes", maxTotal)
				break
			}
			pod, err = parse(data, n, f.Node, f.Defaults)
		}
		if err != nil {
			fault("a static pod's manifest is unusable", "file", n, "err", safetext.Error(err))
			continue
		}
		full := runtime.FullName(pod)
		if other, ok := byName[full]; ok {
			fault("two manifests have the same pod, the second one is left out", "pod", full, "first", other, "second", n)
			continue
		}
		if other, ok := byUID[pod.UID]; ok {
			fault("two manifests have the same metadata.uid, the second one is left out", "uid", pod.UID, "first", other,
				"second", n)
			continue
		}
		byName[full], byUID[pod.UID] = n, n
		pods[pod.UID] = pod
	}
	if faults > maxFaults {
		f.Log.Error("further manifests of static pods are unusable", "path", f.Path, "files", faults-maxFaults)
	}
	return pods, nil
}

// names returns the first maxManifests files of the directory, in the order of their names, or the one file. It holds
// no more names at once than twice these.
func (f *Files) names() ([]string, error) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", f.Path, err)
	}
	if !info.IsDir() {
		return []string{f.Path}, nil
	}
	dir, err := os.Open(f.Path)
	if err != nil {
		return nil, fmt.Errorf("read directory %s: %w", f.Path, err)
	}
	defer dir.Close()
	var names []string
	more := 0
	for {
		entries, err := dir.ReadDir(maxManifests)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
				names = append(names, filepath.Join(f.Path, e.Name()))
			}
		}
		slices.Sort(names)
		more += max(0, len(names)-maxManifests)
		names = names[:min(len(names), maxManifests)]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read directory %s: %w", f.Path, err)
		}
	}
	if more > 0 {
		f.Log.Error("the directory has too many manifests of static pods, those after the last one are left out", "path",
			f.Path, "most", maxManifests, "last", names[len(names)-1], "left", more)
	}
	return names, nil
}

// readManifest reads one file. What is no regular file is not opened: a FIFO would block for ever, and a device may do
// something. The file that was opened is looked at again, because another one may have its name by then.
func readManifest(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	refused := fmt.Errorf("%s is no regular file of at most %d bytes", name, maxManifest)
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, refused
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refused
	}
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = refused
	}
	return data, err
}
