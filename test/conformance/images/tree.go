package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The tree is the storage of the reference registry: blobs/sha256/ab/abcd…/data, and per repository the tags and
// revisions as small files that hold a digest.
const (
	blobsDir        = "docker/registry/v2/blobs"
	repositoriesDir = "docker/registry/v2/repositories"
	manifestType    = "application/vnd.oci.image.manifest.v1+json"
	configType      = "application/vnd.oci.image.config.v1+json"
	layerType       = "application/vnd.oci.image.layer.v1.tar"
)

// config is the part of the OCI image configuration that the suite's images use.
type config struct {
	User         string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	StopSignal   string              `json:",omitempty"`
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// tree is a registry's directory.
type tree string

// store writes an image made of layers under its name, "registry/repository:tag"; the registry is no part of the tree.
func (t tree) store(name string, layers []*layer, c config) error {
	_, rest, _ := strings.Cut(name, "/")
	repository, tag, tagged := strings.Cut(rest, ":")
	if !tagged {
		return fmt.Errorf("image %q has no tag", name)
	}
	if c.Env == nil {
		c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	diffs := make([]string, len(layers))
	blobs := make([]descriptor, len(layers))
	for i, l := range layers {
		diffs[i] = l.digest
		blobs[i] = descriptor{layerType, l.digest, l.size}
		if err := t.blobFromLayer(repository, l); err != nil {
			return err
		}
	}
	image, err := t.document(repository, configType, map[string]any{
		"architecture": "amd64", "os": "linux", "config": c,
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		return err
	}
	manifest, err := t.document(repository, manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": image, "layers": blobs,
	})
	if err != nil {
		return err
	}
	manifests := filepath.Join(string(t), repositoriesDir, repository, "_manifests")
	return errors.Join(
		writeLink(filepath.Join(manifests, "revisions", linkDir(manifest.Digest)), manifest.Digest),
		writeLink(filepath.Join(manifests, "tags", tag, "current"), manifest.Digest),
	)
}

// document stores a JSON document as a blob.
func (t tree) document(repository, mediaType string, content any) (descriptor, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(data)
	d := descriptor{mediaType, "sha256:" + hex.EncodeToString(sum[:]), int64(len(data))}
	return d, t.blob(repository, d.Digest, func(path string) error { return os.WriteFile(path, data, 0o644) })
}

func (t tree) blobFromLayer(repository string, l *layer) error {
	return t.blob(repository, l.digest, func(path string) error {
		if _, err := l.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, l.file)
		return errors.Join(err, f.Close())
	})
}

// blob stores a blob once and links it into the repository.
func (t tree) blob(repository, digest string, write func(path string) error) error {
	path := t.data(digest)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return fmt.Errorf("store the blob %s: %w", digest, err)
		}
	}
	return writeLink(filepath.Join(string(t), repositoriesDir, repository, "_layers", linkDir(digest)), digest)
}

// data is the path of a blob's content.
func (t tree) data(digest string) string {
	sum := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(string(t), blobsDir, "sha256", sum[:2], sum, "data")
}

func linkDir(digest string) string { return strings.Replace(digest, ":", "/", 1) }

func writeLink(dir, digest string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "link"), []byte(digest), 0o644)
}
