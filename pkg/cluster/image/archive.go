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

// Bounds on what is read of an archive before any node imports it. Everything else, above all the layers, is skipped:
// the nodes' containerd takes it as a stream.
const (
	maxEntries   = 100_000  // files, directories and links
	maxNames     = 16 << 20 // bytes of their names together
	maxDocument  = 4 << 20  // bytes of an index, a manifest or a configuration, as in registries
	maxDocuments = 64 << 20 // bytes of all of them together
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
func readArchive(in tarFile) (archive, error) {
	files, err := readFiles(in)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && len(files.contents) > 0:
		return archive{}, errors.New("ends in the middle: was it copied whole?")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return archive{}, errors.New("is no tar archive")
	case err != nil:
		return archive{}, err
	case files.contents["manifest.json"].regular:
		return files.docker()
	case files.contents["index.json"].regular:
		return files.oci()
	}
	return archive{}, errors.New(
		"is a tar archive, but no image: it has neither manifest.json (docker save) nor index.json (OCI); docker export, for example, saves a container's files alone")
}

// tarFile is an archive on disk.
type tarFile interface {
	io.ReadSeeker
	io.ReaderAt
}

// archiveFiles has the names of all files in an archive, and where their contents are.
type archiveFiles struct {
	in       io.ReaderAt
	contents map[string]content
	read     int64 // bytes of documents, so far
}

// content is where the content of a file lies in the archive, in bytes. Only regular files have one.
type content struct {
	regular      bool
	offset, size int64
}

// readFiles reads the headers of an archive. With an error it returns what it has read so far, which distinguishes a
// broken archive from another kind of file.
func readFiles(in tarFile) (archiveFiles, error) {
	files := archiveFiles{in: in, contents: map[string]content{}}
	r, entries, names := tar.NewReader(in), 0, 0
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return files, err
		}
		name := path.Clean(h.Name)
		if entries, names = entries+1, names+len(name); entries > maxEntries {
			return files, fmt.Errorf("has more than %d files", maxEntries)
		}
		if names > maxNames {
			return files, fmt.Errorf("has names of files with more than %d bytes together", maxNames)
		}
		offset, err := in.Seek(0, io.SeekCurrent) // the reader takes no more than the header
		if err != nil {
			return files, err
		}
		files.contents[name] = content{h.Typeflag == tar.TypeReg, offset, h.Size}
	}
}

// has reports whether there is an entry of that name.
func (f *archiveFiles) has(name string) bool {
	_, ok := f.contents[path.Clean(name)]
	return ok
}

// document returns the content of an index, a manifest or a configuration, nil if there is no such file.
func (f *archiveFiles) document(name string) ([]byte, error) {
	name = path.Clean(name)
	c := f.contents[name]
	if !c.regular {
		return nil, nil
	}
	if c.size > maxDocument {
		return nil, fmt.Errorf("has %s of %d bytes, and reading ends at %d", name, c.size, maxDocument)
	}
	if f.read += c.size; f.read > maxDocuments {
		return nil, fmt.Errorf("has indexes, manifests and configurations with more than %d bytes together", maxDocuments)
	}
	data := make([]byte, c.size)
	if _, err := f.in.ReadAt(data, c.offset); err != nil {
		return nil, fmt.Errorf("has %s that cannot be read: %w", name, err)
	}
	return data, nil
}

// docker reads the manifest of docker save, and checks that the archive has everything that it names.
func (f *archiveFiles) docker() (archive, error) {
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	text, err := f.document("manifest.json")
	if err != nil {
		return archive{}, err
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return archive{}, fmt.Errorf("has a manifest.json that cannot be read: %w", err)
	}
	var a archive
	for _, image := range manifest {
		if len(image.RepoTags) == 0 {
			return a, errors.New("has an image without a name: docker save takes the name with its tag, not the ID")
		}
		for _, layer := range append(image.Layers, image.Config) {
			if !f.has(layer) {
				return a, fmt.Errorf("lacks %s of the image %s", layer, image.RepoTags[0])
			}
		}
		for _, name := range image.RepoTags {
			if err := a.add(name); err != nil {
				return a, err
			}
		}
		config, err := f.document(image.Config)
		if err != nil {
			return a, err
		}
		a.says(config)
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
func (f *archiveFiles) oci() (archive, error) {
	var index struct{ Manifests []descriptor }
	text, err := f.document("index.json")
	if err != nil {
		return archive{}, err
	}
	if err := json.Unmarshal(text, &index); err != nil {
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
		case !f.has(d.file()):
			return a, fmt.Errorf("lacks %s of the image %s", d.file(), name)
		}
		if err := a.add(name); err != nil {
			return a, err
		}
		config, err := f.configOf(d)
		if err != nil {
			return a, err
		}
		a.says(config)
	}
	if len(a.names) == 0 {
		return a, errors.New("has no image in its index.json")
	}
	return a, nil
}

// configOf returns the configuration of the image of a manifest, nil if there is none, as for an index of several
// platforms: containerd finds its own.
func (f *archiveFiles) configOf(d descriptor) ([]byte, error) {
	text, err := f.document(d.file())
	if err != nil {
		return nil, err
	}
	var manifest struct{ Config descriptor }
	if json.Unmarshal(text, &manifest) != nil {
		return nil, nil
	}
	return f.document(manifest.Config.file())
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
