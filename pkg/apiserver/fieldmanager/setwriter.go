package fieldmanager

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// setWriter writes the JSON of a field set (FieldsV1), member by member:
//
//	{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}}}}}
//
// A member is {} if its path is in the set, has a "." if paths below it are in the set as well, and is left out if
// neither is. Members must come in the order of their path elements.
//
// The form is that of structured-merge-diff's set serialization. Entries compare by bytes (sameEntry, reapply), so
// every byte has to be as the library writes it, including the order.
type setWriter struct {
	out []byte
	// name is the buffer of nameOf.
	name []byte
}

// reset begins a set. The buffer of the last one is reused.
func (w *setWriter) reset() { w.out = append(w.out[:0], '{') }

// finish ends the set. Nothing can be written after it.
func (w *setWriter) finish() { w.out = append(w.out, '}') }

// empty reports whether the finished set has no members.
func (w *setWriter) empty() bool { return len(w.out) == len("{}") }

// fields returns a copy of the finished set, nil if it is empty.
func (w *setWriter) fields() *metav1.FieldsV1 {
	if w.empty() {
		return nil
	}
	f := &metav1.FieldsV1{}
	f.SetRawBytes(w.out) // copies
	return f
}

// mark remembers where a member begins: the member, its body, and what is below its own path.
type mark struct{ start, body, below int }

// begin begins a member. self: if there is anything below its path, its path is in the set as well.
//
// begin writes optimistically, because whether a member stays is known only after all that is below it. end takes it
// back by truncating the buffer, so no tree is built.
func (w *setWriter) begin(name []byte, self bool) mark {
	m := mark{start: len(w.out)}
	if w.out[m.start-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, name...)
	w.out = append(w.out, '{')
	m.body = len(w.out)
	if self {
		w.out = append(w.out, `".":{}`...)
	}
	m.below = len(w.out)
	return m
}

// end completes a member. owned: its path is in the set, whether there is anything below it or not.
func (w *setWriter) end(m mark, owned bool) {
	// Nothing was written below the path.
	if len(w.out) == m.below {
		if !owned {
			w.out = w.out[:m.start]
			return
		}
		w.out = w.out[:m.body] // {} without a "."
	}
	w.out = append(w.out, '}')
}

// nameOf returns the name of a member. It is valid until the next call; begin copies it.
func (w *setWriter) nameOf(element fieldpath.PathElement) (name []byte, err error) {
	w.name, err = appendName(w.name[:0], element)
	return w.name, err
}

// appendName appends the name of a member as JSON, with the colon. It returns errNeedsLibrary for names that JSON
// escapes with more than a backslash before quotes.
//
// Control characters, backslashes, <, >, & and everything outside ASCII are spelled as the library's JSON encoder
// decides. Such names are rare, so the encoder is not imitated here.
func appendName(out []byte, element fieldpath.PathElement) ([]byte, error) {
	var name string
	if out = append(out, '"'); element.FieldName != nil {
		out, name = append(out, "f:"...), *element.FieldName
	} else {
		var err error
		if name, err = fieldpath.SerializePathElement(element); err != nil {
			return out, err
		}
	}
	for i := range len(name) {
		c := name[i]
		if c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return out, errNeedsLibrary
		}
		if c == '"' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return append(out, `":`...), nil
}
