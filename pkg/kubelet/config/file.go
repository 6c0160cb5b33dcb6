package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Files reads static pods from a directory (or one file), at once when it changes and every Period.
type Files struct {
	Path string
	Node string
	// Period is the time between reads without a change, default 20 s.
	Period   time.Duration
	Defaults func(*corev1.Pod)
	Log      *slog.Logger

	manifests
}

// Run reads until ctx ends.
func (f *Files) Run(ctx context.Context, h Handler) error {
	if f.Period <= 0 {
		f.Period = 20 * time.Second
	}
	var events <-chan fsnotify.Event
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		events = w.Events
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
		}
	}
}

// settle waits until a burst of events is over, so that half-written files are not read.
func settle(ctx context.Context, events <-chan fsnotify.Event) {
	for {
		select {
		case <-ctx.Done():
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

// load parses all manifests. A file that cannot be parsed is logged and left out; a directory that is missing has none.
func (f *Files) load() (map[types.UID]*corev1.Pod, error) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", f.Path, err)
	}
	names := []string{f.Path}
	if info.IsDir() {
		entries, err := os.ReadDir(f.Path)
		if err != nil {
			return nil, fmt.Errorf("read directory %s: %w", f.Path, err)
		}
		names = names[:0]
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
				names = append(names, filepath.Join(f.Path, e.Name()))
			}
		}
	}
	pods := map[types.UID]*corev1.Pod{}
	byName, byUID := map[string]string{}, map[types.UID]string{}
	for _, n := range names {
		pod, err := f.parse(n)
		if err != nil {
			f.Log.Error("a static pod's manifest is unusable", "file", n, "err", err)
			continue
		}
		full := pod.Namespace + "/" + pod.Name
		if other, ok := byName[full]; ok {
			f.Log.Error("two manifests have the same pod, the second one is left out", "pod", full, "first", other,
				"second", n)
			continue
		}
		if other, ok := byUID[pod.UID]; ok {
			f.Log.Error("two manifests have the same metadata.uid, the second one is left out", "uid", pod.UID, "first",
				other, "second", n)
			continue
		}
		byName[full], byUID[pod.UID] = n, n
		pods[pod.UID] = pod
	}
	return pods, nil
}

func (f *Files) parse(name string) (*corev1.Pod, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", name, maxManifest)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parse(data, name, f.Node, f.Defaults)
}
