package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
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

// Recipe is a small image of one layer.
type Recipe struct {
	Ref string
	// Files maps a path in the image to a file on this machine, which becomes executable. Links maps a path to the
	// target of a symbolic link. All paths in the image are relative to its root, without a slash before them.
	Files, Links map[string]string
	// Text maps a path to the content of a small file. Dirs are further directories.
	Text       map[string]string
	Dirs       []string
	Entrypoint []string
	Cmd        []string
	User       string
}

// WriteRecipe builds the image of a recipe and writes it to path as an archive that containerd imports. The file is
// whole or not there. The build calls it, never a running cluster.
func WriteRecipe(path string, r Recipe) error {
	ref, err := name.NewTag(r.Ref)
	if err != nil {
		return fmt.Errorf("image name %q: %w", r.Ref, err)
	}
	content, err := r.layer()
	if err != nil {
		return fmt.Errorf("build %s: %w", r.Ref, err)
	}
	// The layer is not compressed: it never crosses a network, and each node would spend time to unpack it.
	layer := static.NewLayer(content, types.DockerUncompressedLayer)
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	architecture, err := r.architecture()
	if err != nil {
		return fmt.Errorf("build %s: %w", r.Ref, err)
	}
	image, err = mutate.ConfigFile(image, r.config(image, architecture))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// A failure may leave the file with the suffix, which the next build writes over.
	if err := tarball.WriteToFile(path+".new", ref, image); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

// architectures are Go's names, which those of images are too, for those of ELF files.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// architecture returns the architecture of the programs in the image, which must be one, or this machine's if there are
// only scripts.
func (r Recipe) architecture() (string, error) {
	found := ""
	for _, path := range sorted(r.Files) {
		f, err := elf.Open(r.Files[path])
		if _, other := errors.AsType[*elf.FormatError](err); other || errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return "", err
		}
		of := architectures[f.Machine]
		f.Close()
		if of == "" || found != "" && of != found {
			return "", fmt.Errorf("%s is for %s, and others are not", r.Files[path], cmp.Or(of, f.Machine.String()))
		}
		found = of
	}
	return cmp.Or(found, runtime.GOARCH), nil
}

// config returns the configuration of the image.
func (r Recipe) config(image v1.Image, architecture string) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = architecture, "linux"
	config.Config = v1.Config{Entrypoint: r.Entrypoint, Cmd: r.Cmd, User: r.User, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	return config
}

// layer returns the image's only layer as a tar file. It has no times and a fixed order, so the same recipe always
// gives the same bytes, and the same digest. It is held in memory as a whole: these images are small programs with
// their libraries.
func (r Recipe) layer() ([]byte, error) {
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
	for _, d := range sorted(dirs) { // a parent sorts before what is in it
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
		if err := w.WriteHeader(
			&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: r.Links[path], Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// addFile adds a file to a layer.
func addFile(w *tar.Writer, path string, mode int64, data []byte) error {
	if err := w.WriteHeader(
		&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := io.Copy(w, bytes.NewReader(data))
	return err
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
