package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/docbounds"
	"bonsai/pkg/strictjson"
)

// maxBody is the largest request body in bytes, 3 MiB. It is upstream's, and what etcd takes in one request.
const maxBody = 3 << 20

// received is a body that has been read completely.
type received struct {
	*bytes.Reader
	all []byte
}

// Close implements io.Closer.
func (received) Close() error { return nil }

// Receive reads a body of at most maxBody bytes (413 beyond), and returns the request with it. It calls hold with the
// number of bytes before each growth of the buffer, and stops if hold refuses. The buffer grows with the bytes that
// have arrived, whatever length the client announced.
func Receive(r *http.Request, hold func(bytes int) error) (*http.Request, error) {
	all, err := receive(r, hold)
	if err != nil {
		return nil, err
	}
	out := *r
	out.Body = received{bytes.NewReader(all), all}
	return &out, nil
}

// Received returns the length of a body that Receive has read, and the memory that it takes; 0 for other bodies.
func Received(r *http.Request) (length, memory int) {
	b, ok := r.Body.(received)
	if !ok {
		return 0, 0
	}
	return len(b.all), cap(b.all)
}

// readBody returns the body, which the server has received before.
func readBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(received); ok {
		return b.all, nil
	}
	return receive(r, func(int) error { return nil })
}

// firstGrowth is the size of the buffer, in bytes, before anything has arrived.
const firstGrowth = 16 << 10

// receive reads the body on the request's goroutine. The buffer doubles from firstGrowth on: a client that announces 3
// MiB and sends nothing costs 16 KiB. Growing copies, so old and new buffer exist together for a moment; hold counts
// only the new size. An error leaves the rest of the body unread.
func receive(r *http.Request, hold func(bytes int) error) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	// One byte more than allowed is read of a body of unknown length, to see that it is too long.
	limit := maxBody + 1
	if r.ContentLength >= 0 {
		limit = int(r.ContentLength)
	}
	var b []byte
	for {
		if len(b) == cap(b) && len(b) < limit {
			// limit keeps the buffer of a body of known length from growing beyond it.
			size := min(max(2*cap(b), firstGrowth), limit)
			if err := hold(size - cap(b)); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, size), b...)
		}
		if len(b) == limit {
			break
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unreadable(err)
		}
	}
	if len(b) > maxBody {
		return nil, tooLarge()
	}
	// A body that ends early could still be valid YAML, without the fields at its end.
	if r.ContentLength > int64(len(b)) {
		return nil, unreadable(io.ErrUnexpectedEOF)
	}
	return b, nil
}

func tooLarge() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
}

func unreadable(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("cannot read the request body: %v", err))
}

// DefaultValues is the default of Config.MaxValues. Legitimate objects have some ten thousand values at most (a slice
// of 1,000 endpoints, a large schema). A value may cost a kilobyte to decode and to validate, and a merge copies every
// level.
const DefaultValues = 100_000

// bodyBounds limits what a body may become when it is decoded: 6 MiB of text, values values (0: DefaultValues), and 300
// levels. They protect against YAML aliases and deep nesting, which make a small body huge.
func bodyBounds(values int) docbounds.Bounds {
	if values == 0 {
		values = DefaultValues
	}
	return docbounds.Bounds{Bytes: 2 * maxBody, Values: values, Depth: 300}
}

// document returns the body, if it is within bodyBounds (413, or 400 for its depth). into is the object that the caller
// decodes it into, nil for a patch.
func (x *exchange) document(into runtime.Object) ([]byte, error) {
	body, err := readBody(x.r)
	if err != nil {
		return nil, err
	}
	return body, x.bounded(body, into)
}

// bounded checks body against bodyBounds, with document's errors. The body is scanned. YAML is then parsed to its nodes
// as well, with the aliases counted but not written out. At last it looks at the request's context: a large body takes
// time, and the caller need not decode it for a client that has left.
func (x *exchange) bounded(body []byte, into runtime.Object) (err error) {
	bounds := bodyBounds(x.MaxValues)
	switch bodyType(x.r) {
	case typeProtobuf:
		if e, broken := registry.ParseEnvelope(body); broken == nil && into != nil {
			err = x.messages.Protobuf(e.Raw, into, bounds)
		}
	case typeYAML, typeApply:
		err = docbounds.YAML(body, bounds)
	default:
		err = docbounds.JSON(body, bounds)
	}
	if errors.Is(err, docbounds.ErrDeep) || errors.Is(err, docbounds.ErrBroken) {
		return apierrors.NewBadRequest(err.Error())
	}
	if err != nil {
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return x.r.Context().Err()
}

// bodyType is the media type of the body; none is JSON. A header that cannot be parsed is returned as it is, and then
// is a type that nothing supports (415).
func bodyType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	switch header {
	case "", typeJSON:
		return typeJSON
	case typeProtobuf:
		return typeProtobuf
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

// decode reads body into an object of the wanted kind. The body need not name the kind. validation is fieldValidation:
// Ignore, Warn (also for "") or Strict; warn receives the warnings. After an error, into may be half filled, and the
// caller drops it.
func decode(body []byte, media string, w wanted, into runtime.Object, validation string, warn func(string)) error {
	var strict []error
	var err error
	switch media {
	case typeJSON:
		strict, err = decodeJSON(body, w, into, validation)
	case typeYAML:
		strict, err = decodeYAML(body, w, into, validation)
	case typeProtobuf:
		m, ok := into.(registry.Message)
		if !ok {
			return unsupportedMedia(typeJSON, typeYAML)
		}
		err = decodeProtobuf(body, w, m)
	default:
		return unsupportedMedia(allTypes()...)
	}
	if err != nil {
		return err
	}
	if err := w.read(into); err != nil {
		return cannotHandle(w.GroupVersionKind, w.GroupVersionKind, err)
	}
	if len(strict) > 0 {
		if validation == metav1.FieldValidationStrict {
			return cannotHandle(w.GroupVersionKind, w.GroupVersionKind, runtime.NewStrictDecodingError(strict))
		}
		for _, s := range strict {
			for _, line := range warningLines(s) {
				warn(line)
			}
		}
	}
	into.GetObjectKind().SetGroupVersionKind(w.GroupVersionKind)
	return nil
}

// decodeJSON decodes in one pass, which also finds unknown and duplicate fields unless they are ignored. Only if that
// fails does it look at the kind alone, for an error about the kind, which says more than one about a field.
func decodeJSON(body []byte, w wanted, into runtime.Object, validation string) (strict []error, err error) {
	strict, err = readJSON(body, into, w.prune, validation)
	if err == nil {
		got := into.GetObjectKind().GroupVersionKind()
		if u, ok := into.(runtime.Unstructured); ok {
			return strict, checkUnstructuredKind(u, w.GroupVersionKind, body)
		}
		if got.Version == "" { // nothing is named, or a version that is none
			if err := badVersion(body, w.GroupVersionKind); err != nil {
				return nil, err
			}
		}
		return strict, w.check(got, body)
	}
	got, kindErr := named(body)
	if kindErr != nil {
		return nil, unrecognized(w.GroupVersionKind, kindErr, body)
	}
	if kindErr := w.check(got, body); kindErr != nil {
		return nil, kindErr
	}
	if _, ok := into.(runtime.Unstructured); ok { // which must name itself: see checkUnstructuredKind
		if got.Kind == "" {
			return nil, unrecognized(w.GroupVersionKind, runtime.NewMissingKindErr(string(body)), body)
		}
		return nil, cannotHandle(got, w.GroupVersionKind, err)
	}
	return nil, cannotHandle(w.GroupVersionKind, w.GroupVersionKind, err)
}

// readJSON decodes body. strict are unknown and duplicate fields, unless they are ignored.
func readJSON(body []byte, into runtime.Object, prune pruner, validation string) (strict []error, err error) {
	ignore := validation == metav1.FieldValidationIgnore
	if u, ok := into.(runtime.Unstructured); ok {
		if strict, err = readUnstructured(body, u, prune); ignore {
			strict = nil
		}
		return strict, err
	}
	if ignore {
		return nil, strictjson.DecodeLoosely(body, into)
	}
	return strictjson.Decode(body, into)
}

// decodeYAML is decodeJSON for YAML. YAML becomes JSON first, which loses duplicate keys. They are searched for in a
// second pass, and only if they matter.
func decodeYAML(body []byte, w wanted, into runtime.Object, validation string) ([]error, error) {
	// document has bounded the body with its aliases written out, so this cannot grow beyond the bounds.
	asJSON, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, unrecognized(w.GroupVersionKind, err, body)
	}
	strict, err := decodeJSON(asJSON, w, into, validation)
	if err != nil || validation == metav1.FieldValidationIgnore {
		return strict, err
	}
	if _, dup := yaml.YAMLToJSONStrict(body); dup != nil {
		strict = append([]error{dup}, strict...)
	}
	return strict, nil
}

// decodeProtobuf reads a body in Kubernetes' envelope. It has no strict errors: a protobuf message has numbers instead
// of names, and Kubernetes does not check them either. The kind comes first: another kind's bytes could decode without
// an error, into nonsense.
func decodeProtobuf(body []byte, w wanted, into registry.Message) error {
	e, err := registry.ParseEnvelope(body)
	if err != nil {
		return unrecognized(w.GroupVersionKind, err, body)
	}
	if err := w.check(schema.FromAPIVersionAndKind(string(e.APIVersion), string(e.Kind)), body); err != nil {
		return err
	}
	if err := into.Unmarshal(e.Raw); err != nil {
		return cannotHandle(w.GroupVersionKind, w.GroupVersionKind, err)
	}
	return nil
}

// bodyError is the 400 for a body that cannot be read. cause is the bare reason, for callers with words of their own.
type bodyError struct {
	*apierrors.StatusError
	cause error
}

func (e *bodyError) Unwrap() error { return e.StatusError }

func cannotHandle(got, want schema.GroupVersionKind, err error) error {
	return &bodyError{apierrors.NewBadRequest(
		fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err)), err}
}

// unrecognized is the error for a body whose kind cannot be read.
func unrecognized(want schema.GroupVersionKind, err error, body []byte) error {
	return &bodyError{apierrors.NewBadRequest(
		fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err,
			excerpt(body))), err}
}

// badVersion returns the error for a JSON body with an invalid apiVersion, such as "a/b/c", and nil for any other body.
func badVersion(body []byte, want schema.GroupVersionKind) error {
	if !bytes.Contains(body, []byte(`"apiVersion"`)) {
		return nil
	}
	var named metav1.TypeMeta
	if json.UnmarshalCaseSensitivePreserveInts(body, &named) != nil {
		return nil
	}
	if _, err := schema.ParseGroupVersion(named.APIVersion); err != nil {
		return unrecognized(want, err, body)
	}
	return nil
}

// warningLines returns the warnings for an error of strict decoding: one for each line of a YAML error.
func warningLines(err error) []string {
	text, ok := strings.CutPrefix(err.Error(), "yaml: unmarshal errors:\n")
	if !ok {
		return []string{err.Error()}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// excerpt shows the start of a body that cannot be read, in hexadecimal unless it looks like JSON. The length is
// upstream's, as the text reaches clients.
func excerpt(body []byte) string {
	const most = 30
	if len(body) == 0 {
		return "<empty>"
	}
	cut, more := body, ""
	if len(cut) > most {
		cut, more = cut[:most], " ..."
	}
	if body[0] == '{' {
		return string(cut) + more
	}
	return fmt.Sprintf("%x%s", cut, more)
}

// isStatus reports whether err is a Status error of the API already.
func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// peekKind reads the kind a body of a media type names; zero if it cannot. It is for bodies that may name one of
// several versions; the decoding that follows reports what is wrong with them.
func peekKind(body []byte, media string) metav1.TypeMeta {
	var named metav1.TypeMeta
	var err error
	switch media {
	case typeYAML:
		err = yaml.Unmarshal(body, &named)
	case typeProtobuf:
		var e registry.Envelope
		if e, err = registry.ParseEnvelope(body); err == nil {
			named.APIVersion, named.Kind = string(e.APIVersion), string(e.Kind)
		}
	default:
		err = json.UnmarshalCaseSensitivePreserveInts(body, &named)
	}
	if err != nil {
		return metav1.TypeMeta{}
	}
	return named
}
