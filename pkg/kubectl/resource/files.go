package resource

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"bonsai/pkg/docbounds"
	"bonsai/pkg/kubectl/kustomization"
)

// maxFile bounds what is read from one file, URL or standard input.
const maxFile = 64 << 20

// Files are the flags -f, -k and -R.
type Files struct {
	Names []string
	// Kustomize is the directory of a kustomization, or the address of one: what it builds to is read instead of files.
	Kustomize string
	Recursive bool
	// always tells that directories are read recursively unless the user says otherwise: -k may then be given without
	// -R=false.
	always bool
	// Check refuses objects that do not say their apiVersion and kind as invalid, as opposed to undecodable.
	Check bool
}

// AddFlags adds -f, --filename, -k, --kustomize and -R, --recursive; usage says what the files are for.
func (f *Files) AddFlags(set *pflag.FlagSet, usage string) {
	f.always = f.Recursive
	set.StringSliceVarP(&f.Names, "filename", "f", f.Names, usage)
	set.StringVarP(&f.Kustomize, "kustomize", "k", f.Kustomize,
		"Process the kustomization directory. This flag can't be used together with -f or -R.")
	set.BoolVarP(&f.Recursive, "recursive", "R", f.Recursive,
		"Process the directory used in -f, --filename recursively. Useful when you want to manage related manifests organized within the same directory.")
}

// Empty reports whether no file and no kustomization was named.
func (f *Files) Empty() bool { return len(f.Names) == 0 && f.Kustomize == "" }

// ErrLocalNeedsFiles is why a verb with --local refuses to do anything where no file is named.
var ErrLocalNeedsFiles = errors.New(
	"you must specify resources by --filename when --local is set.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'")

// Validate refuses flags that do not go together.
func (f *Files) Validate() error {
	switch {
	case f.Kustomize != "" && len(f.Names) > 0:
		return errors.New("only one of -f or -k can be specified")
	case f.Kustomize != "" && f.Recursive && !f.always:
		return errors.New("the -k flag can't be used with -f or -R")
	}
	return nil
}

// Document is one object of a file.
type Document struct {
	// Source is the file, URL or kustomization, "STDIN" for standard input.
	Source string
	Object *unstructured.Unstructured
	// listed is set for an item of a list.
	listed bool
}

// Read reads all objects of the files; lists are taken apart. It goes on with the next file after one that cannot be
// read, and returns what was read together with the errors.
func (c *Client) Read(ctx context.Context, f Files) ([]Document, error) {
	sources, err := c.sources(ctx, f)
	if err != nil {
		return nil, err
	}
	var out []Document
	var errs []error
	for _, s := range sources {
		docs, err := s.documents(f.Check)
		out = append(out, docs...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return out, aggregate(errs)
}

// source is something to read from.
type source struct {
	name string
	open func() (io.ReadCloser, error)
}

// ErrStdinTwice is the error of a command that is to read two things from standard input.
var ErrStdinTwice = errors.New("standard input cannot be used for multiple arguments")

// sources are all that f names; none if one of the files is not there.
func (c *Client) sources(ctx context.Context, f Files) ([]source, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if f.Kustomize != "" {
		return []source{{f.Kustomize, func() (io.ReadCloser, error) {
			data, err := kustomization.YAML(f.Kustomize)
			return io.NopCloser(bytes.NewReader(data)), err
		}}}, nil
	}
	var out []source
	for n, name := range f.Names {
		if name == "-" && slices.Contains(f.Names[:n], "-") {
			return nil, ErrStdinTwice
		}
		more, err := c.expand(ctx, name, f.Recursive)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// OneSource reports whether f names one file alone, a directory with a single one included.
func (c *Client) OneSource(ctx context.Context, f Files) bool {
	s, err := c.sources(ctx, f)
	return err == nil && len(s) == 1
}

func (c *Client) expand(ctx context.Context, name string, recursive bool) ([]source, error) {
	switch {
	case name == "-":
		return []source{{"STDIN", func() (io.ReadCloser, error) { return io.NopCloser(asUTF8(c.stdin)), nil }}}, nil
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		return []source{{name, func() (io.ReadCloser, error) { return c.download(ctx, name) }}}, nil
	}
	names, err := walk(name, recursive)
	if err != nil {
		return nil, err
	}
	var out []source
	for _, n := range names {
		out = append(out, source{n, func() (io.ReadCloser, error) { return openUTF8(n) }})
	}
	return out, nil
}

// walk lists the manifests of a pattern, file or directory.
func walk(name string, recursive bool) ([]string, error) {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		matches, _ := filepath.Glob(name)
		if len(matches) == 0 {
			return nil, fmt.Errorf("the path %q does not exist", name)
		}
		var all []string
		for _, m := range matches {
			more, err := walk(m, recursive)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	} else if err != nil {
		return nil, fmt.Errorf("the path %q cannot be accessed: %w", name, err)
	}
	var all []string
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != name && !recursive {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); path == name || ext == ".json" || ext == ".yaml" || ext == ".yml" {
			all = append(all, path)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("error reading %v: recognized file extensions are [.json .yaml .yml]", []string{name})
	}
	return all, err
}

func (c *Client) download(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("unable to read URL %q, server reported %s, status code=%d", address, resp.Status,
			resp.StatusCode)
	}
	return resp.Body, nil
}

func (s source) documents(check bool) ([]Document, error) {
	r, err := s.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return parse(s.name, r, check)
}

// fileBounds are those of a document with its aliases written out: far beyond what a server takes, but no machine's
// memory.
var fileBounds = docbounds.Bounds{Bytes: maxFile, Values: 5_000_000, Depth: 10_000}

// bounded refuses documents whose aliases grow without measure when they are written out. Without an anchor none can.
func bounded(data []byte) error {
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); bytes.ContainsRune(data, '&'); {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := docbounds.YAML(doc, fileBounds); err != nil {
			return err
		}
	}
	return nil
}

// parse reads the YAML or JSON objects of r; source names it in errors.
func parse(source string, r io.Reader, check bool) ([]Document, error) {
	var out []Document
	data, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return nil, fmt.Errorf("error reading %s: %w", source, err)
	}
	if err := bounded(data); err != nil {
		return nil, fmt.Errorf("error parsing %s: %w", source, err)
	}
	var errs []error
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var ext runtime.RawExtension
		if err := d.Decode(&ext); errors.Is(err, io.EOF) {
			return out, aggregate(errs)
		} else if err != nil {
			return out, aggregate(append(errs, fmt.Errorf("error parsing %s: %w", source, err)))
		}
		ext.Raw = []byte(strings.TrimSpace(string(ext.Raw)))
		if len(ext.Raw) == 0 || string(ext.Raw) == "null" {
			continue
		}
		if check {
			if err := checkType(ext.Raw); err != nil {
				// %v: all that is missing is one message
				return out, fmt.Errorf("error validating %q: error validating data: %v; if you choose to ignore these errors, turn validation off with --validate=false", source, err)
			}
		}
		docs, err := objects(source, ext.Raw)
		if err != nil {
			errs = append(errs, err) // those after it may be objects
			continue
		}
		out = append(out, docs...)
	}
}

// checkType tells what an object, or the items of a list, do not say of their types.
func checkType(data []byte) error {
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return err
	}
	object, ok := content.(map[string]any)
	if !ok {
		return errors.New("invalid object to validate")
	}
	all := []any{object}
	if items, ok := object["items"].([]any); ok && object["kind"] == "List" {
		all = append(all, items...)
	}
	var errs []error
	for _, o := range all {
		fields, _ := o.(map[string]any)
		for _, name := range []string{"apiVersion", "kind"} {
			if s, _ := fields[name].(string); s == "" {
				errs = append(errs, errors.New(name+" not set"))
			}
		}
	}
	return aggregate(errs)
}

// errListInList refuses a file with a list in a list, in upstream's words. Reading only the outer one would leave
// objects out.
var errListInList = errors.New("*unstructured.Unstructured is not a list: no Items field in this object")

func objects(source string, data []byte) ([]Document, error) {
	var head struct {
		metav1.TypeMeta
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("unable to decode %q: %w", source, err)
	}
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("unable to decode %q: %w", source, err)
	}
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		if o.GetAPIVersion() == "" {
			return nil, fmt.Errorf("unable to decode %q: Object 'apiVersion' is missing in '%s'", source, data)
		}
		return []Document{{Source: source, Object: o}}, nil
	case *unstructured.UnstructuredList:
		var out []Document
		for i := range o.Items {
			if o.Items[i].IsList() {
				return nil, errListInList
			}
			out = append(out, Document{Source: source, Object: &o.Items[i], listed: true})
		}
		return out, nil
	}
	return nil, fmt.Errorf("unable to decode %q: unexpected %T", source, obj)
}
