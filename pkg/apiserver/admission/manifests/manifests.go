// Package manifests gives admission plug-ins the webhooks and policies that files describe (KEP-5793). They are in
// force from the first request on, whatever etcd contains, and no client can change them. A bad file is fatal at the
// start. Later the server logs it, and what was read before stays in force.
package manifests

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/storage/follow"
)

const (
	lookEvery  = time.Second
	retryEvery = time.Minute // a directory that is not good
	// maxFiles bounds the files of a directory; configfile bounds each.
	maxFiles = 1000
	// maxBytes bounds the files of a directory together.
	maxBytes = 16 << 20
)

// Kind is what a plug-in takes from files.
type Kind struct {
	Row  *resources.Row
	Into follow.Handler
}

// Config says what to read, and for whom.
type Config struct {
	// Plugin is the plug-in's name, What its objects: "policy" or "webhook".
	Plugin, What string
	// Path is the directory.
	Path string
	// Kinds are put in their order, and removed in the other one.
	Kinds   []Kind
	Metrics *Metrics
	Now     func() time.Time
	Log     *slog.Logger
}

// Directory is a directory of manifests. Its methods belong to one goroutine.
type Directory struct {
	Config
	looked listing            // how the files were at the last look
	failed time.Time          // when changed files were not taken; zero: they were
	hash   string             // of what is in force
	known  map[string]*object // by key: what is in force
}

// Load reads the directory and informs the plug-in.
func Load(cfg Config) (*Directory, error) {
	d := &Directory{Config: cfg, looked: look(cfg.Path)}
	if _, err := d.reload(); err != nil {
		return nil, fmt.Errorf("failed to initialize admission plugin %q: failed to load static %s manifests from %q: %w",
			d.Plugin, d.What, d.Path, err)
	}
	return d, nil
}

// Run follows the directory until ctx ends.
func (d *Directory) Run(ctx context.Context) error {
	for configfile.Sleep(ctx, lookEvery) {
		d.turn()
	}
	return nil
}

// turn takes over what has changed.
func (d *Directory) turn() {
	now := look(d.Path)
	if now.same(d.looked) && (d.failed.IsZero() || d.Now().Sub(d.failed) < retryEvery) {
		return
	}
	d.looked = now
	changed, err := d.reload()
	if err != nil {
		d.failed = d.Now()
		d.Metrics.reloaded(d.Plugin, false, d.failed)
		d.Log.Error("the manifests of an admission plug-in are not taken over: the earlier ones stay in force",
			"plugin", d.Plugin, "path", d.Path, "err", err)
		return
	}
	d.failed = time.Time{}
	if changed {
		d.Log.Info("the manifests of an admission plug-in are taken over", "plugin", d.Plugin, "path", d.Path)
	}
}

// reload reads the files, and puts their objects in force if all of them are good.
func (d *Directory) reload() (changed bool, err error) {
	files, err := read(d.Path)
	if err != nil {
		return false, err
	}
	all, err := d.objects(files)
	if err != nil {
		return false, err
	}
	hash := hashOf(files)
	if hash == d.hash {
		return false, nil
	}
	for i, kind := range d.Kinds {
		for key, o := range all {
			if o.kind == i {
				kind.Into.Put(key, o.obj)
			}
		}
	}
	for i := len(d.Kinds) - 1; i >= 0; i-- {
		for key, o := range d.known {
			if _, stays := all[key]; o.kind == i && !stays {
				d.Kinds[i].Into.Delete(key)
			}
		}
	}
	d.known, d.hash = all, hash
	d.Metrics.reloaded(d.Plugin, true, d.Now())
	d.Metrics.applied(d.Plugin, hash)
	return true, nil
}

// object is what a manifest describes.
type object struct {
	kind int // of Config.Kinds
	obj  runtime.Object
	name string
	file string
}

// objects reads the objects of all files, by the keys that the plug-in knows them by.
func (d *Directory) objects(files []file) (map[string]*object, error) {
	all := map[string]*object{}
	for _, f := range files {
		found, err := d.decode(f)
		if err != nil {
			return nil, fmt.Errorf("error loading %s: %w", f.path, err)
		}
		for _, o := range found {
			key := d.Kinds[o.kind].Row.Resource + "/" + o.name
			if before := all[key]; before != nil {
				return nil, fmt.Errorf("error loading %s: duplicate name %q found in file %q (previously seen in %q)",
					f.path, o.name, f.path, before.file)
			}
			all[key] = o
		}
	}
	return all, bound(all)
}

// file is a file of the directory.
type file struct {
	path string
	text []byte
}

// names are the paths of a directory's manifests, in order.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	if len(out) > maxFiles {
		return nil, fmt.Errorf("%d files, and %d are allowed", len(out), maxFiles)
	}
	return out, nil
}

func read(dir string) ([]file, error) {
	paths, err := names(dir)
	if err != nil {
		return nil, err
	}
	out, total := make([]file, len(paths)), 0
	for i, path := range paths {
		text, err := configfile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("error loading %s: %w", path, err)
		}
		if total += len(text); total > maxBytes {
			return nil, fmt.Errorf("error loading %s: the manifests have more than %d MiB together", path, maxBytes>>20)
		}
		out[i] = file{path, text}
	}
	return out, nil
}

// listing is what a directory and its files look like, without reading one.
type listing struct {
	files map[string]os.FileInfo // by path; nil: one that cannot be found
	err   string                 // why the directory cannot be listed
}

func look(dir string) listing {
	paths, err := names(dir)
	if err != nil {
		return listing{err: err.Error()}
	}
	l := listing{files: make(map[string]os.FileInfo, len(paths))}
	for _, path := range paths {
		l.files[path], _ = os.Stat(path) // one that is missing is read's to report
	}
	return l
}

// same reports whether nothing has changed since the listing before.
func (l listing) same(before listing) bool {
	return l.err == before.err && maps.EqualFunc(l.files, before.files, configfile.Same)
}

// hashOf is the hash of all files, as metrics show it.
func hashOf(files []file) string {
	var parts [][]byte
	for _, f := range files {
		parts = append(parts, fmt.Appendf(nil, "%s %d\n", f.path, len(f.text)), f.text)
	}
	return configfile.Hash(parts...)
}

// sorted are the objects in the order of their keys.
func sorted(all map[string]*object) (out []*object) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[key])
	}
	return out
}
