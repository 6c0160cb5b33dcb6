package cluster

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sort"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The local images. Each node serves their registry, "localhost", to its own containerd, from the files in bin/images.
const (
	PauseImage   = "localhost/pause:1.0"
	BusyboxImage = "localhost/busybox:1.0"
	CoreDNSImage = "localhost/coredns:1.14.3"

	MetricsServerImage = "localhost/metrics-server:0.9.0"
	RegistryImage      = "localhost/registry:3.1.2"
	TraefikImage       = "localhost/traefik:3.6.0"
)

// localImages are the archives in bin/images that the cluster's nodes serve themselves.
func (c Config) localImages() []string {
	names := []string{"pause"}
	for _, a := range optionalAddons {
		if a.image && c.hasAddon(a.name) {
			names = append(names, a.name)
		}
	}
	return append(names, "busybox")
}

// ImageRecipe is a small image of one layer.
type ImageRecipe struct {
	Ref string
	// Files maps a path in the image to a file on this machine; Links maps a path to a symbolic link's target.
	Files, Links map[string]string
	// Text maps a path to a small file's content; Dirs are further directories.
	Text       map[string]string
	Dirs       []string
	Entrypoint []string
	Cmd        []string
	User       string
}

// DefaultImages are those that a cluster with the add-ons that it has by default needs.
func DefaultImages() []string { return Config{}.localImages() }

// LocalRecipes returns the recipes of the local images, made of the binaries in binDir and of busybox, which brings the shared libraries
// that it needs, and has the given applets.
func LocalRecipes(binDir, busybox string, applets []string) (map[string]ImageRecipe, error) {
	shell, err := withLibraries("bin/busybox", busybox)
	if err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, applet := range applets {
		if applet = filepath.Base(applet); applet != "busybox" && applet != "" {
			links["bin/"+applet] = "busybox"
		}
	}
	accounts := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	}
	lookups := map[string]string{"etc/nsswitch.conf": "hosts: files dns\n"}
	maps.Copy(lookups, accounts)
	return map[string]ImageRecipe{
		"pause": {Ref: PauseImage, Files: map[string]string{"pause": filepath.Join(binDir, "pause")}, Entrypoint: []string{"/pause"}, User: "65535:65535"},
		"busybox": {Ref: BusyboxImage, Files: shell, Links: links, Text: lookups,
			Dirs: []string{"tmp", "root", "var", "usr"}, Cmd: []string{"sh"}},
		"coredns": {Ref: CoreDNSImage, Files: map[string]string{"coredns": filepath.Join(binDir, "coredns")}, Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/coredns"}, User: "65534:65534"},
		"metrics-server": {Ref: MetricsServerImage, Files: map[string]string{"metrics-server": filepath.Join(binDir, "metrics-server")}, Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/metrics-server"}, User: "65534:65534"},
		"traefik": {Ref: TraefikImage, Files: map[string]string{"traefik": filepath.Join(binDir, "traefik")}, Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/traefik"}, User: "65534:65534"},
		"registry": {Ref: RegistryImage, Files: map[string]string{"registry": filepath.Join(binDir, "registry")}, Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/registry"}, User: "65534:65534"},
	}, nil
}

// WriteImage builds the recipe and writes it to path as an archive that containerd imports.
func WriteImage(path string, r ImageRecipe) error {
	ref, err := name.NewTag(r.Ref)
	if err != nil {
		return fmt.Errorf("image name %q: %w", r.Ref, err)
	}
	content, err := r.layer()
	if err != nil {
		return fmt.Errorf("build %s: %w", r.Ref, err)
	}
	// Not compressed: it never travels, and a node would spend time on it.
	layer := static.NewLayer(content, types.DockerUncompressedLayer)
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, r.config(image))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := tarball.WriteToFile(path+".new", ref, image); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

func (r ImageRecipe) config(image v1.Image) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{Entrypoint: r.Entrypoint, Cmd: r.Cmd, User: r.User, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	return config
}

// layer is the image's one layer as a tar file; the same recipe gives the same bytes.
func (r ImageRecipe) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dirs := map[string]bool{}
	for _, d := range r.Dirs {
		dirs[d] = true
	}
	for _, set := range []map[string]string{r.Files, r.Links, r.Text} {
		for path := range set {
			for d := filepath.Dir(path); d != "."; d = filepath.Dir(d) {
				dirs[d] = true
			}
		}
	}
	for _, d := range sorted(dirs) {
		mode := int64(0o755)
		if d == "tmp" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: mode}); err != nil {
			return nil, err
		}
	}
	for _, path := range sorted(r.Files) {
		data, err := os.ReadFile(r.Files[path])
		if err != nil {
			return nil, err
		}
		if err := addFile(w, path, 0o755, data); err != nil {
			return nil, err
		}
	}
	for _, path := range sorted(r.Text) {
		if err := addFile(w, path, 0o644, []byte(r.Text[path])); err != nil {
			return nil, err
		}
	}
	for _, path := range sorted(r.Links) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: r.Links[path], Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

func addFile(w *tar.Writer, path string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := io.Copy(w, bytes.NewReader(data))
	return err
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
