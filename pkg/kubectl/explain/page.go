package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// width is how wide descriptions are, without their indent.
const width = 76

// fewEnums is how many values of an enum a list of fields shows.
const fewEnums = 4

// page writes the explanation of one kind or field.
type page struct {
	doc *document
	out io.Writer
	depth
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// print explains the field at path of gvk's schema root; the kind itself if path is empty.
func (p *page) print(gvk schema.GroupVersionKind, root *node, path []string) error {
	if gvk.Group != "" {
		p.printf("GROUP:      %s\n", gvk.Group)
	}
	p.printf("KIND:       %s\nVERSION:    %s\n\n", gvk.Kind, gvk.Version)
	n, ok := p.doc.find(root, path)
	if !ok {
		return fmt.Errorf("field %q does not exist", path[len(path)-1])
	}
	if len(path) > 0 {
		p.field(path[len(path)-1], n)
	}
	p.printf("DESCRIPTION:\n")
	if texts := p.doc.descriptions(n); len(texts) > 0 {
		p.text(strings.Join(texts, "\n")+"\n", "    ")
	} else {
		p.printf("    <empty>\n")
	}
	if owner, name := p.doc.element(n); len(owner.Properties) > 0 {
		p.printf("FIELDS:\n")
		p.fields(owner, 1, []string{name})
	}
	p.printf("\n")
	return nil
}

// field names the field and its type, and the values it may have.
func (p *page) field(name string, n *node) {
	p.printf("FIELD: %s <%s>\n", name, p.doc.typeOf(n))
	if to, _ := p.doc.follow(n); len(to.Enum) > 0 {
		p.printf("ENUM:\n")
		for _, v := range to.Enum {
			p.printf("    %s\n", value(v))
		}
	} else {
		p.printf("\n")
	}
	p.printf("\n")
}

// fields lists owner's fields by name. above are the schemas that the list is within: one of them is not listed again.
func (p *page) fields(owner *node, level int, above []string) {
	indent := strings.Repeat("  ", level)
	for _, name := range slices.Sorted(maps.Keys(owner.Properties)) {
		n := owner.Properties[name]
		required := ""
		if slices.Contains(owner.Required, name) {
			required = " -required-"
		}
		p.printf("%s%s\t<%s>%s\n", indent, name, p.doc.typeOf(n), required)
		if to, _ := p.doc.follow(n); len(to.Enum) > 0 {
			p.printf("%senum: %s\n", indent, enum(to.Enum))
		}
		if !p.recursive {
			p.summary(n, indent+"  ")
			continue
		}
		if e, ref := p.doc.element(n); p.below(level) && (ref == "" || !slices.Contains(above, ref)) {
			p.fields(e, level+1, append(slices.Clip(above), ref))
		}
	}
}

// summary is the field's own description, or its type's if it has none.
func (p *page) summary(n *node, indent string) {
	text := n.Description
	if text == "" {
		text = "<no description>"
	}
	p.text(text, indent)
	p.printf("\n")
}

func enum(values []any) string {
	var out []string
	for _, v := range values[:min(len(values), fewEnums)] {
		out = append(out, value(v))
	}
	if len(values) > fewEnums {
		out = append(out, "....")
	}
	return strings.Join(out, ", ")
}

// value shows one value of an enum.
func value(v any) string {
	if v == "" {
		return `""`
	}
	return fmt.Sprint(v)
}

// text writes s in lines that fit, each behind indent.
func (p *page) text(s, indent string) {
	for _, line := range strings.Split(s, "\n") {
		for _, l := range wrap(line, width) {
			p.printf("%s%s\n", indent, l)
		}
	}
}

// wrap breaks a line at spaces so that no part is longer than limit, words that are longer excepted. Spaces within a
// part are kept.
func wrap(line string, limit int) []string {
	var out []string
	current := ""
	for rest := line; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, " "))
		end := strings.IndexByte(rest[n:], ' ')
		if end < 0 {
			end = len(rest) - n
		}
		gap, word := rest[:n], rest[n:n+end]
		rest = rest[n+end:]
		if current != "" && len([]rune(current+gap+word)) > limit {
			out, current = append(out, current), word
			continue
		}
		current += gap + word
	}
	return append(out, current)
}
