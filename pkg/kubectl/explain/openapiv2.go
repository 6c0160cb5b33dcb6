package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/resource"
)

// plaintextV2 is the older form of the page, made of the definitions at /openapi/v2.
const plaintextV2 = "plaintext-openapiv2"

// widthV2 is how wide descriptions are in the older form, without their indent.
const widthV2 = 75

// definitions reads what /openapi/v2 defines, of all groups.
func (o *Options) definitions(ctx context.Context) (*document, error) {
	data, err := o.client.Do(ctx, http.MethodGet, []string{"/openapi/v2"}, nil, nil, "Accept", resource.JSON)
	if err != nil {
		return nil, err
	}
	var v2 struct {
		Definitions map[string]*node `json:"definitions"`
	}
	if err := json.Unmarshal(data, &v2); err != nil {
		return nil, fmt.Errorf("decode the server's OpenAPI document: %w", err)
	}
	d := &document{}
	d.Components.Schemas = v2.Definitions
	return d, nil
}

// explainV2 shows the older form.
func (o *Options) explainV2(ctx context.Context, gvr schema.GroupVersionResource, path []string) error {
	gvk, err := o.client.Mapper.KindFor(gvr.GroupResource().WithVersion(""))
	if err != nil {
		return err
	}
	gvk.Version = gvr.Version
	doc, err := o.definitions(ctx)
	if err != nil {
		return err
	}
	root := doc.schemaOf(gvk)
	if root == nil {
		return fmt.Errorf("couldn't find resource for %q", gvk)
	}
	return (&pageV2{doc: doc, out: o.Out, depth: o.depth}).print(gvk, root, path)
}

// pageV2 writes the older form of the explanation of one kind or field.
type pageV2 struct {
	doc *document
	out io.Writer
	depth
}

func (p *pageV2) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *pageV2) print(gvk schema.GroupVersionKind, root *node, path []string) error {
	n, missing := p.find(root, path)
	if n == nil {
		return fmt.Errorf("field %q does not exist", missing)
	}
	p.printf("KIND:     %s\nVERSION:  %s\n\n", gvk.Kind, gvk.GroupVersion())
	inner, ref := p.doc.element(n)
	if len(path) > 0 {
		name := path[len(path)-1]
		switch {
		case len(inner.Properties) > 0:
			p.printf("RESOURCE: %s <%s>\n\n", name, p.typeOf(n))
		case inner.Type != "" && inner.Type != "object":
			p.printf("FIELD:    %s <%s>\n\n", name, p.typeOf(n))
		}
	}
	p.printf("DESCRIPTION:\n")
	p.descriptions(n)
	if len(inner.Properties) > 0 {
		p.printf("\nFIELDS:\n")
		p.fields(inner, 1, []string{ref})
	}
	return nil
}

// find is the field at path beneath n, or nil and the name that is not there. What has no fields of its own leads to
// itself.
func (p *pageV2) find(n *node, path []string) (found *node, missing string) {
	for _, name := range path {
		to, _ := p.doc.follow(n)
		for to.Items != nil {
			to, _ = p.doc.follow(to.Items)
		}
		switch {
		case len(to.Properties) > 0:
			if n = to.Properties[name]; n == nil {
				return nil, name
			}
		case to.Values.node != nil:
			n = to.Values.node
		}
	}
	return n, ""
}

// typeOf names n's type: "string", "Object", "[]Object", "map[string]string"; "" for what may be anything.
func (p *pageV2) typeOf(n *node) string {
	to, _ := p.doc.follow(n)
	switch {
	case to.Items != nil:
		return "[]" + p.typeOf(to.Items)
	case to.Values.node != nil:
		return "map[string]" + p.typeOf(to.Values.node)
	case len(to.Properties) > 0:
		return "Object"
	case to.Type == "object":
		return "map[string]"
	}
	return to.Type
}

// descriptions writes those of n and of all it leads to, with a line between.
func (p *pageV2) descriptions(n *node) {
	texts := p.texts(n)
	if strings.Join(texts, "") == "" {
		p.printf("     <empty>\n")
		return
	}
	p.text(texts[0], "     ")
	for _, t := range texts[1:] {
		if t != "" {
			p.printf("\n")
			p.text(t, "     ")
		}
	}
}

// texts are the descriptions of n, of what it refers to and of its elements. An object without fields is a map of
// anything, which has the same description.
func (p *pageV2) texts(n *node) []string {
	out := []string{n.Description}
	to, _ := p.doc.follow(n)
	if to != n {
		out = append(out, to.Description)
	}
	switch {
	case to.Items != nil:
		return append(out, p.texts(to.Items)...)
	case to.Values.node != nil:
		return append(out, p.texts(to.Values.node)...)
	case to.Type == "object" && len(to.Properties) == 0:
		return append(out, to.Description)
	}
	return out
}

// fields lists owner's fields by name, with their descriptions or, if recursive, only their own fields. above are the
// schemas that the list is within: one of them is not listed again.
func (p *pageV2) fields(owner *node, level int, above []string) {
	indent := strings.Repeat("   ", level)
	for _, name := range slices.Sorted(maps.Keys(owner.Properties)) {
		n := owner.Properties[name]
		p.printf("%s%s\t<%s>", indent, name, p.typeOf(n))
		if p.recursive {
			p.printf("\n")
			if e, ref := p.doc.element(n); p.below(level) && (ref == "" || !slices.Contains(above, ref)) {
				p.fields(e, level+1, append(slices.Clip(above), ref))
			}
			continue
		}
		if slices.Contains(owner.Required, name) {
			p.printf(" -required-")
		}
		p.printf("\n")
		p.text(n.Description, indent+"  ")
		p.printf("\n")
	}
}

// text writes s in lines that fit, each behind indent. Nothing is written of an empty text.
func (p *pageV2) text(s, indent string) {
	for _, part := range paragraphs(s) {
		if strings.HasPrefix(part, code) {
			p.printf("%s%s\n", indent, part)
			continue
		}
		for _, l := range wrap(part, widthV2) {
			p.printf("%s\n", strings.TrimRight(indent+l, " "))
		}
	}
}

// code begins a line that is shown as it is, as in Markdown.
const code = "    "

// paragraphs are the parts of a text that are wrapped each for itself: what has blank lines around it, an item of a
// list, a line of code. "" is the line between two of them.
func paragraphs(s string) []string {
	var out []string
	joins := false // the next line belongs to the last part
	for _, line := range strings.Split(strings.TrimSpace(s), "\n") {
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "":
			if len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
			joins = false
		case strings.HasPrefix(line, code):
			out, joins = append(out, strings.TrimRight(line, " ")), false
		case joins && !listItem.MatchString(words):
			out[len(out)-1] += " " + words
			joins = !strings.HasSuffix(words, ":")
		default:
			out = append(out, words)
			joins = !strings.HasSuffix(words, ":")
		}
	}
	return out
}

var listItem = regexp.MustCompile(`^([-*]|\d+\.) `)
