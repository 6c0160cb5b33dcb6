package clusterfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// problems collects what is wrong with a file, each with its line and field.
type problems struct {
	root *yaml.Node
	errs []error
}

// check adds err, unless it is nil, as the problem of the field at path.
func (p *problems) check(err error, path ...any) {
	if err != nil {
		p.add(err.Error(), path...)
	}
}

// add adds a problem at a path of names and indexes. A missing field has the line of the value that it belongs into.
func (p *problems) add(problem string, path ...any) {
	at, name := p.root, ""
	if len(at.Content) > 0 {
		at = at.Content[0] // of the document
	}
	for _, step := range path {
		if i, ok := step.(int); ok {
			name += fmt.Sprintf("[%d]", i)
			if at.Kind == yaml.SequenceNode && i < len(at.Content) {
				at = at.Content[i]
			}
			continue
		}
		name += "." + fmt.Sprint(step)
		for i := 0; at.Kind == yaml.MappingNode && i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				at = at.Content[i+1]
				break
			}
		}
	}
	p.errs = append(p.errs, fmt.Errorf("line %d: %s: %s", max(at.Line, 1), strings.TrimPrefix(name, "."), problem))
}

var (
	unknownField  = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType     = regexp.MustCompile(`cannot unmarshal (!!\S+) (.*) into \S+`)
	decoderPrefix = regexp.MustCompile(`^yaml: (unmarshal errors:\n *)?`)
)

// plainYAMLError returns the decoder's error without the names of our Go types.
func plainYAMLError(err error) error {
	text := decoderPrefix.ReplaceAllString(err.Error(), "")
	text = unknownField.ReplaceAllString(text, `unknown field "$1"`)
	text = wrongType.ReplaceAllString(text, "$2 ($1) is not what belongs here")
	return errors.New(strings.ReplaceAll(text, "\n  ", "\n"))
}
