// Package docbounds measures JSON, YAML and protobuf documents before they are decoded: a few kilobytes of aliases, of
// brackets in brackets or of empty items can cost a decoder gigabytes or minutes.
package docbounds

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Errors of a document that is beyond its bounds. ErrDeep, in the words of Go's decoder, is one of them.
var (
	ErrBeyond = errors.New("document is too large")
	ErrDeep   = fmt.Errorf("%w: exceeded max depth", ErrBeyond)
)

// Bounds are what a document may at most be.
type Bounds struct {
	// Bytes bounds what YAML becomes with all aliases written out, in bytes.
	Bytes int
	// Values bounds the objects, lists and scalars; in JSON they are counted by brackets and commas. It also bounds the
	// lines of YAML's comments.
	Values int
	// Depth bounds objects and lists in one another.
	Depth int
}

// JSON measures a document in one pass, without memory. It does not check it: what is no JSON is the decoder's to
// refuse.
func JSON(doc []byte, max Bounds) error {
	depth, values, inString := 0, 1, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if depth > max.Depth {
			return fmt.Errorf("%w of %d", ErrDeep, max.Depth)
		}
		if values > max.Values {
			return fmt.Errorf("%w: more than %d values", ErrBeyond, max.Values)
		}
	}
	return nil
}

// YAML measures the first document of a stream, as if every alias were written out. It is scanned first, without much
// memory, and parsed only if that finds no more than the bounds. What cannot be parsed is within the bounds, unless it
// is beyond them as well: the decoder will say what is wrong with it.
func YAML(doc []byte, max Bounds) error {
	if err := tokens(doc, max); err != nil {
		return err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return nil
	}
	m := measure{known: map[*yaml.Node]size{}}
	s, err := m.of(&root)
	switch {
	case err != nil:
		return err
	case s.bytes > max.Bytes:
		return fmt.Errorf("%w: more than %d bytes with aliases written out", ErrBeyond, max.Bytes)
	case s.values > max.Values:
		return fmt.Errorf("%w: more than %d values with aliases written out", ErrBeyond, max.Values)
	case s.depth > max.Depth:
		return fmt.Errorf("%w of %d", ErrDeep, max.Depth)
	}
	return nil
}

type size struct{ bytes, values, depth int }

// enough is where sums stop growing: aliases of aliases overflow any integer.
const enough = 1 << 40

// perValue is what stands between two values at least, in bytes.
const perValue = 1

// measure remembers the size of what has an anchor, so that the work is that of the document as it is written.
type measure struct{ known map[*yaml.Node]size }

func (m measure) of(n *yaml.Node) (size, error) {
	if n.Kind == yaml.AliasNode {
		s, ok := m.known[n.Alias]
		if !ok {
			return size{}, fmt.Errorf("%w: anchor %q contains itself", ErrBeyond, n.Value)
		}
		return s, nil
	}
	s := size{bytes: len(n.Value) + perValue, values: 1}
	for _, child := range n.Content {
		c, err := m.of(child)
		if err != nil {
			return size{}, err
		}
		s.bytes = min(s.bytes+c.bytes, enough)
		s.values = min(s.values+c.values, enough)
		s.depth = max(s.depth, c.depth)
	}
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		s.depth++
	}
	if n.Anchor != "" {
		m.known[n] = s
	}
	return s, nil
}
