package archiveregistry

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxMetadata bounds what is read of an archive's manifest and of an image's configuration, in bytes.
const maxMetadata = 1 << 20

// errUnknown is for what an archive does not have.
var errUnknown = errors.New("unknown")

// archive is an open file of `docker save` with one image. Its layers are as they are: not compressed, so that a
// layer's digest is the DiffID that the configuration names, and nothing has to be read to know it. The format:
// https://github.com/moby/docker-image-spec/blob/main/spec.md (Combined Image JSON + Filesystem Changeset Format).
type archive struct {
	*os.File
	files map[string]extent

	config     string // the configuration's file in the archive
	layers     []string
	tags       []string
	rawConfig  []byte
	diffDigest []string
}

// extent is where a file's content lies in the archive, in bytes.
type extent struct{ offset, size int64 }

// open reads an archive's headers, its manifest and its image's configuration.
func open(path string) (_ *archive, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &archive{File: f, files: map[string]extent{}}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		offset, err := f.Seek(0, io.SeekCurrent) // the reader takes no more than the header
		if err != nil {
			return nil, err
		}
		a.files[h.Name] = extent{offset, h.Size}
	}
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	raw, err := a.metadata("manifest.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(manifest) != 1 {
		return nil, fmt.Errorf("%d images, not one", len(manifest))
	}
	m := manifest[0]
	a.config, a.layers, a.tags = m.Config, m.Layers, m.RepoTags
	if a.rawConfig, err = a.metadata(m.Config); err != nil {
		return nil, err
	}
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(a.rawConfig, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Config, err)
	}
	a.diffDigest = config.RootFS.DiffIDs
	if len(a.diffDigest) != len(a.layers) {
		return nil, fmt.Errorf("%d layers, %d digests of layers", len(a.layers), len(a.diffDigest))
	}
	for _, layer := range a.layers {
		if _, ok := a.files[layer]; !ok {
			return nil, fmt.Errorf("%s is missing", layer)
		}
	}
	return a, nil
}

// metadata reads a small file of the archive.
func (a *archive) metadata(name string) ([]byte, error) {
	at, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing", name)
	}
	if at.size > maxMetadata {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxMetadata)
	}
	data := make([]byte, at.size)
	_, err := a.ReadAt(data, at.offset)
	return data, err
}

// tagged reports whether the image has that tag, whatever its registry.
func (a *archive) tagged(tag string) bool {
	return slices.ContainsFunc(a.tags, func(t string) bool { return strings.HasSuffix(t, ":"+tag) })
}

// layer is the content of the layer of that digest.
func (a *archive) layer(digest string) (*io.SectionReader, error) {
	i := slices.Index(a.diffDigest, digest)
	if i < 0 {
		return nil, errUnknown
	}
	at := a.files[a.layers[i]]
	return io.NewSectionReader(a, at.offset, at.size), nil
}
