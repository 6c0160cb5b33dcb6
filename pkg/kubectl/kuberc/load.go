package kuberc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds what is read of a kuberc file.
const maxFile = 1 << 20

// Location is where the preferences are: the file of --kuberc or of $KUBERC, which must exist, or ~/.kube/kuberc. Off
// says that $KUBERC turns them off.
type Location struct {
	Path     string
	Explicit bool
	Off      bool
}

// Enabled reports whether kubectl has preferences at all: $KUBECTL_KUBERC=false takes them away.
func Enabled() bool { return os.Getenv("KUBECTL_KUBERC") != "false" }

// Locate finds the file; flag is the value of --kuberc, "" where it is not said.
func Locate(flag string) (Location, error) {
	env := os.Getenv("KUBERC")
	switch {
	case env == "off" && flag != "":
		return Location{}, errors.New(
			"kuberc error disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")
	case env == "off":
		return Location{Off: true}, nil
	case flag != "":
		return Location{Path: flag, Explicit: true}, nil
	case env != "":
		return Location{Path: env, Explicit: true}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return Location{Off: true}, nil // as for somebody without a file
	}
	return Location{Path: filepath.Join(home, ".kube", "kuberc")}, nil
}

// place is where the parts of a preference stand in its file.
type place struct {
	file string
	root *yaml.Node // the document's mapping
}

// at says of err where in the file the field is, or its item i (-1 for the field itself).
func (p place) at(field string, i int, err error) error {
	if p.root == nil {
		return err
	}
	line := p.root.Line
	for n := 0; n+1 < len(p.root.Content); n += 2 {
		if p.root.Content[n].Value != field {
			continue
		}
		line = p.root.Content[n].Line
		if items := p.root.Content[n+1].Content; i >= 0 && i < len(items) {
			line = items[i].Line
		}
	}
	return fmt.Errorf("%s: line %d: %w", p.file, line, err)
}

// Load reads a file: its first document of a version that is known. What the version does not have is warned of on w. A
// file that is not there, where it need not be, and an empty one are no preferences: nil.
func Load(l Location, w io.Writer) (*Preference, error) {
	if l.Off {
		return nil, nil
	}
	f, err := os.Open(l.Path)
	if errors.Is(err, os.ErrNotExist) && !l.Explicit {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kuberc error kuberc: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("kuberc error kuberc: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("kuberc error kuberc: %s: it has more than %d bytes", l.Path, maxFile)
	}
	p, warning, err := parse(l.Path, data)
	if err != nil {
		return nil, fmt.Errorf("kuberc error kuberc: %w", err)
	}
	if warning != "" {
		fmt.Fprintf(w, "kuberc: ignoring strict decoding error in %s: %s\n", l.Path, warning)
	}
	if p == nil {
		return nil, nil
	}
	return p, p.validate()
}

// parse decodes the first document of a known version; warning is what of it is unknown.
func parse(file string, data []byte) (p *Preference, warning string, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, "", nil
	}
	line := 0
	d, strict := yaml.NewDecoder(bytes.NewReader(data)), yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	for {
		var document yaml.Node
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			return nil, "", fmt.Errorf("%s: line %d: no valid preferences found: want kind %s of %s", file,
				max(line, 1), kind, groupV1beta1)
		} else if err != nil {
			return nil, "", fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(document.Content) == 0 {
			_ = strict.Decode(&yaml.Node{}) // d read it
			continue
		}
		root := document.Content[0]
		line = root.Line
		p, warning, err := decode(root, strict)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
		if p != nil {
			p.place = place{file: file, root: root}
			return p, warning, nil
		}
		_ = strict.Decode(&yaml.Node{}) // d read it
	}
}

// alpha is the file of v1alpha1, where options were called flags and defaults overrides.
type alpha struct {
	Kind       string `yaml:"kind"`
	APIVersion string `yaml:"apiVersion"`
	Overrides  []struct {
		Command string   `yaml:"command"`
		Flags   []Option `yaml:"flags"`
	} `yaml:"overrides"`
	Aliases []struct {
		Name      string   `yaml:"name"`
		Command   string   `yaml:"command"`
		Prepended []string `yaml:"prependArgs"`
		Appended  []string `yaml:"appendArgs"`
		Flags     []Option `yaml:"flags"`
	} `yaml:"aliases"`
}

// decode returns nil for a document of another kind or version. strict stands before the same document.
func decode(root *yaml.Node, strict *yaml.Decoder) (*Preference, string, error) {
	var head struct {
		Kind       string `yaml:"kind"`
		APIVersion string `yaml:"apiVersion"`
	}
	if root.Kind != yaml.MappingNode {
		return nil, "", fmt.Errorf("line %d: want a mapping with kind and apiVersion", root.Line)
	}
	if err := root.Decode(&head); err != nil {
		return nil, "", plain(err)
	}
	if head.Kind != kind {
		return nil, "", nil
	}
	out := &Preference{Kind: kind, APIVersion: groupV1beta1}
	switch head.APIVersion {
	case groupV1beta1:
		warning, err := known(root, strict, out)
		return out, warning, err
	case groupV1alpha:
		var in alpha
		warning, err := known(root, strict, &in)
		for _, o := range in.Overrides {
			out.Defaults = append(out.Defaults, Defaults{o.Command, o.Flags})
		}
		for _, a := range in.Aliases {
			out.Aliases = append(out.Aliases, Alias{a.Name, a.Command, a.Prepended, a.Appended, a.Flags})
		}
		return out, warning, err
	}
	return nil, "", nil
}

// known decodes root into out. Fields that out does not have, which strict finds, are the warning, values of a wrong
// type an error.
func known(root *yaml.Node, strict *yaml.Decoder, out any) (warning string, err error) {
	if err := root.Decode(out); err != nil {
		return "", plain(err)
	}
	if err := strict.Decode(out); err != nil {
		return plain(err).Error(), nil
	}
	return "", nil
}

// maxMistakes bounds how many mistakes of a file are said.
const maxMistakes = 5

// ours is how yaml names a type of this package.
var ours = regexp.MustCompile(` into (\[\])?(kuberc\.|struct ).*`)

// plain words yaml's error without its own prefixes and the names of our types.
func plain(err error) error {
	mistakes, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	var all []string
	for _, m := range mistakes.Errors {
		m, _, _ = strings.Cut(m, " not found in type ")
		m = ours.ReplaceAllString(strings.Replace(m, ": field ", ": unknown field ", 1), "")
		if slices.Contains(all, m) {
			continue
		}
		if len(all) == maxMistakes {
			all = append(all, "and more")
			break
		}
		all = append(all, m)
	}
	return errors.New(strings.Join(all, ", "))
}
