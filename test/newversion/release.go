package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// module is the Go module with the data files of a release.
const module = "k8s.io/kubernetes"

// largest bounds one data file, in bytes: the largest, swagger.json, has 5 MB.
const largest = 64 << 20

// release is a release of Kubernetes whose module is on this machine.
type release struct {
	version string // "v1.37.2"
	place   string // of its files, for readers
	files   fs.FS
}

// moduleVersion returns the version that the k8s.io modules have for a release: v0.37.2 for v1.37.2.
func moduleVersion(tag string) string { return "v0." + strings.TrimPrefix(tag, "v1.") }

// download gets the module of a release through the Go module proxy, or from the module cache. Its files are read from
// the archive, because go does not unpack a module that needs a newer Go. The caller closes what is returned.
func download(ctx context.Context, tag string) (release, io.Closer, error) {
	if _, err := version.ParseSemantic(tag); err != nil || !strings.HasPrefix(tag, "v1.") {
		return release{}, nil, fmt.Errorf("the version %q is no tag of a release such as v1.37.2: give VERSION=", tag)
	}
	var m struct{ Dir, Zip, Error string }
	out, err := goTool(ctx, "mod", "download", "-json", module+"@"+tag)
	if jsonErr := json.Unmarshal(out, &m); jsonErr == nil && m.Zip == "" && m.Error != "" {
		err = errors.New(m.Error)
	}
	if m.Zip == "" {
		return release{}, nil, fmt.Errorf("download %s %s: %w", module, tag, cmp.Or(err, errors.New("no archive")))
	}
	archive, err := zip.OpenReader(m.Zip)
	if err != nil {
		return release{}, nil, fmt.Errorf("%s: %w", m.Zip, err)
	}
	files, err := fs.Sub(archive, module+"@"+tag)
	return release{version: tag, place: cmp.Or(m.Dir, m.Zip), files: files}, archive, err
}

// missing returns those of the k8s.io modules that cannot be had in this version, with the reason.
func missing(ctx context.Context, modules []string, version string) (facts, error) {
	if len(modules) == 0 {
		return nil, nil // go list would list all that it knows
	}
	args := []string{"list", "-m", "-e", "-json=Path,Error"}
	for _, m := range modules {
		args = append(args, m+"@"+version)
	}
	out, err := goTool(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("ask for the modules of %s: %w", version, err)
	}
	absent := facts{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct {
			Path  string
			Error *struct{ Err string }
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return absent, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list about the modules of %s: %w", version, err)
		}
		if m.Error != nil {
			absent[m.Path] = m.Error.Err
		}
	}
}

// goTool runs the go command outside of any module, so that no go.mod decides what it sees, and returns what it prints.
func goTool(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = os.TempDir(), os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd.Output()
}

// read returns a data file of the release.
func (r release) read(path string) ([]byte, error) {
	data, err := read(r.files, path)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes %s: %w", r.version, err)
	}
	return data, nil
}

// add reads a data file of the release into f.
func (r release) add(f facts, path string, parse func(f facts, data []byte) error) error {
	if err := addFile(f, r.files, path, parse); err != nil {
		return fmt.Errorf("Kubernetes %s: %w", r.version, err)
	}
	return nil
}

// addFile reads a file into f. A file in which nothing is found is an error: everything would be new or gone.
func addFile(f facts, from fs.FS, path string, parse func(f facts, data []byte) error) error {
	data, err := read(from, path)
	if err != nil {
		return err
	}
	found := facts{}
	if err := parse(found, data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has nothing that is known here: has its form changed?", path)
	}
	maps.Copy(f, found)
	return nil
}

// has reports whether the release has a file.
func (r release) has(path string) bool {
	_, err := fs.Stat(r.files, path)
	return err == nil
}

// read returns a file, up to the bound.
func read(from fs.FS, path string) ([]byte, error) {
	f, err := from.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("%s has more than %d MiB", path, largest>>20)
	}
	return data, err
}
