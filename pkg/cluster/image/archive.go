package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// archive is what an image archive contains.
type archive struct {
	names    []string // the images in it, in full: docker.io/library/app:1
	platform string   // of the first of them that has one, as linux/amd64; "" if none has
}

// Bounds on what stays in memory of an archive while it is read, in bytes. Everything else, above all the layers, is
// skipped.
const (
	keptFile  = 1 << 20  // one file: a manifest or a configuration is smaller
	keptFiles = 16 << 20 // all files together
)

// plain returns the content of r, unpacked if gzip has compressed it. It recognizes the compressions that users confuse
// with it, and says how to unpack them. Content that was not compressed comes as a *bufio.Reader, by which plainFile
// sees that there was nothing to unpack.
func plain(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case len(head) == 0:
		return nil, errors.New("is empty")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("is no gzip file: %w", err)
		}
		return unpacked, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("is compressed by zstd: unpack it first (zstd -d)")
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z'}):
		return nil, errors.New("is compressed by xz: unpack it first (xz -d)")
	}
	return in, nil
}

// readArchive reads an uncompressed archive of docker save or of an OCI image layout, to its end. It finds what is
// wrong before any node begins to import. Its errors complete a sentence that begins with the archive's name.
func readArchive(r io.Reader) (archive, error) {
	files, err := readFiles(tar.NewReader(r))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && len(files.there) > 0:
		return archive{}, errors.New("ends in the middle: was it copied whole?")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return archive{}, errors.New("is no tar archive")
	case err != nil:
		return archive{}, err
	case files.content["manifest.json"] != nil:
		return files.docker()
	case files.content["index.json"] != nil:
		return files.oci()
	}
	return archive{}, errors.New(
		"is a tar archive, but no image: it has neither manifest.json (docker save) nor index.json (OCI); docker export, for example, saves a container's files alone")
}

// archiveFiles has the names of all files in an archive, and the content of the small ones.
type archiveFiles struct {
	there   map[string]bool
	content map[string][]byte
}

// readFiles reads an archive. With an error it returns what it has read so far, which distinguishes a broken archive
// from another kind of file. A small file beyond keptFiles is skipped like a layer, so that an archive of many small
// files cannot fill the memory. If its manifest is among them, the archive counts as none.
func readFiles(r *tar.Reader) (archiveFiles, error) {
	files := archiveFiles{there: map[string]bool{}, content: map[string][]byte{}}
	total := int64(0)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return files, err
		}
		name := path.Clean(h.Name)
		files.there[name] = true
		if h.Typeflag != tar.TypeReg || h.Size > keptFile || total+h.Size > keptFiles {
			continue
		}
		total += h.Size
		if files.content[name], err = io.ReadAll(r); err != nil {
			return files, err
		}
	}
}

// docker reads the manifest of docker save, and checks that the archive has everything that it names.
func (f archiveFiles) docker() (archive, error) {
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(f.content["manifest.json"], &manifest); err != nil {
		return archive{}, fmt.Errorf("has a manifest.json that cannot be read: %w", err)
	}
	var a archive
	for _, image := range manifest {
		if len(image.RepoTags) == 0 {
			return a, errors.New("has an image without a name: docker save takes the name with its tag, not the ID")
		}
		for _, layer := range append(image.Layers, image.Config) {
			if !f.there[path.Clean(layer)] {
				return a, fmt.Errorf("lacks %s of the image %s", layer, image.RepoTags[0])
			}
		}
		for _, name := range image.RepoTags {
			if err := a.add(name); err != nil {
				return a, err
			}
		}
		a.says(f.content[path.Clean(image.Config)])
	}
	if len(a.names) == 0 {
		return a, errors.New("has no image in its manifest.json")
	}
	return a, nil
}

// descriptor is the part of an OCI descriptor that identifies its blob.
type descriptor struct {
	Digest      string
	Annotations map[string]string
}

// file returns the path of the blob in the archive.
func (d descriptor) file() string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// oci reads the index of an OCI image layout. Without a full name containerd would import the image under a name that
// no pod can use.
func (f archiveFiles) oci() (archive, error) {
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(f.content["index.json"], &index); err != nil {
		return archive{}, fmt.Errorf("has an index.json that cannot be read: %w", err)
	}
	var a archive
	for _, d := range index.Manifests {
		// containerd's annotation has the full name; the one of the OCI image layout often has the tag alone.
		name := d.Annotations["io.containerd.image.name"]
		if name == "" {
			name = d.Annotations["org.opencontainers.image.ref.name"]
		}
		switch {
		case name == "":
			return a, fmt.Errorf("has an image without a name (%s): its index.json must have one in the annotation org.opencontainers.image.ref.name", d.Digest)
		case !strings.ContainsAny(name, ":/"):
			return a, fmt.Errorf("has an image with the tag %s alone: its index.json must have the whole name in the annotation org.opencontainers.image.ref.name", name)
		case !f.there[d.file()]:
			return a, fmt.Errorf("lacks %s of the image %s", d.file(), name)
		}
		if err := a.add(name); err != nil {
			return a, err
		}
		var manifest struct{ Config descriptor }
		// An index of several platforms has none: containerd finds its own.
		if json.Unmarshal(f.content[d.file()], &manifest) == nil {
			a.says(f.content[manifest.Config.file()])
		}
	}
	if len(a.names) == 0 {
		return a, errors.New("has no image in its index.json")
	}
	return a, nil
}

// add adds an image by the full form of its name, under which containerd has it.
func (a *archive) add(name string) error {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return fmt.Errorf("has an image called %q: %w", name, err)
	}
	a.names = append(a.names, full.String())
	return nil
}

// says takes the platform from an image's configuration, unless an earlier image had one.
func (a *archive) says(config []byte) {
	var c struct{ OS, Architecture string }
	if json.Unmarshal(config, &c) == nil && a.platform == "" && c.Architecture != "" {
		a.platform = c.OS + "/" + c.Architecture
	}
}
