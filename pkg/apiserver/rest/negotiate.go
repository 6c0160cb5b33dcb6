package rest

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Media types of request and response bodies.
const (
	typeJSON     = runtime.ContentTypeJSON
	typeYAML     = runtime.ContentTypeYAML
	typeProtobuf = runtime.ContentTypeProtobuf
)

// allTypes returns the media types of answers that are not stored objects: Status, Scale, reviews.
func allTypes() []string { return []string{typeJSON, typeYAML, typeProtobuf} }

// accepted is the agreed form of an answer.
type accepted struct {
	media string // one of the media types
	// as is "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"; version of meta.k8s.io goes with it.
	as, version string
	pretty      bool
}

// purpose says which forms make sense for an answer.
type purpose int

const (
	forObject purpose = iota // one object
	forList
	forStream // a watch
	forPart   // an object of a kind of its own that stands for a part of a stored one: Scale
	forPlain  // anything without table or metadata form: Status, reviews
)

// negotiate agrees on the form of the answer. Whole objects have the media types of their codec: custom resources have
// no protobuf.
func (x *exchange) negotiate(p purpose) (accepted, error) {
	if p == forPlain || p == forPart || x.res.full == nil {
		return negotiate(x.r, p, allTypes())
	}
	return negotiate(x.r, p, x.res.media)
}

// negotiate returns the first form that the client accepts, in the client's order of preference. types are the media
// types of whole objects. Metadata comes in all media types, and a refusal names all of them, as in Kubernetes.
func negotiate(r *http.Request, p purpose, types []string) (accepted, error) {
	header := r.Header["Accept"]
	// The usual headers need no parsing.
	if len(header) == 1 {
		switch header[0] { // what almost every client sends
		case typeProtobuf:
			if slices.Contains(types, typeProtobuf) {
				return accepted{media: typeProtobuf}, nil
			}
		case typeJSON, "*/*", "application/json, */*":
			return accepted{media: typeJSON, pretty: wantsPretty(r)}, nil
		}
	}
	known, refusal := false, ""
	for _, clause := range acceptClauses(strings.Join(header, ",")) {
		a, why, ok := clause.accepted(p, types)
		if ok {
			a.pretty = a.media == typeJSON && wantsPretty(r)
			return a, nil
		}
		if a.as != "" && why != "" { // a form that is there, but not of this: Kubernetes looks no further
			refusal, known = why, true
			break
		}
		known = known || a.media != ""
		refusal = cmp.Or(refusal, why)
	}
	// custom resources do not tell an unknown type from one they do not have
	if !known && slices.Contains(types, typeProtobuf) {
		return accepted{}, unknownMedia(p == forStream || p == forList && r.Method == http.MethodGet)
	}
	return accepted{}, plainError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		cmp.Or(refusal, onlyThese(allTypes()...)))
}

// clause is one element of an Accept header.
type clause struct {
	media  string
	params map[string]string
	q      float64
}

// acceptClauses parses a header, the best clause first. An empty header accepts everything. The sort is stable, so
// clauses of the same q keep the client's order, as Kubernetes' clients rely on: kubectl lists Table before plain JSON.
func acceptClauses(header string) []clause {
	if strings.TrimSpace(header) == "" {
		return []clause{{media: "*/*"}}
	}
	var out []clause
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil { // of a broken clause, what stands before its parameters
			media, _, _ = strings.Cut(part, ";")
			media, params = strings.TrimSpace(media), nil
		}
		q := 1.0
		if s, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(s, 64); err != nil {
				continue
			}
		}
		out = append(out, clause{media: media, params: params, q: q})
	}
	slices.SortStableFunc(out, func(a, b clause) int { return cmp.Compare(b.q, a.q) })
	return out
}

// accepted reports whether this server can answer for p as the clause asks. If not, why is the reason for the client.
// The parameter stream does not matter: the request decides whether the answer is a stream.
func (c clause) accepted(p purpose, types []string) (a accepted, why string, ok bool) {
	switch c.media {
	case "*/*", "application/*", typeJSON:
		a.media = typeJSON
	case typeYAML:
		a.media = typeYAML
	case typeProtobuf:
		a.media = typeProtobuf
	default:
		return a, "", false
	}
	if p == forStream && a.media == typeYAML {
		return a, onlyThese(streamTypes()...), false
	}
	as := c.params["as"]
	if as == "" {
		return a, "", slices.Contains(types, a.media)
	}
	a.as, a.version = as, c.params["v"]
	if c.params["g"] != metav1.GroupName || a.version != "v1" && a.version != "v1beta1" {
		return a, "", false
	}
	switch as {
	case "Table":
		return a, "", p != forPlain && a.media != typeProtobuf
	case "PartialObjectMetadata":
		if p == forPlain {
			return a, "", false
		}
		return a, "you requested PartialObjectMetadata, but the requested object is a list", p == forObject ||
			p == forPart || p == forStream
	case "PartialObjectMetadataList":
		if p == forPlain {
			return a, "", false
		}
		return a, "you requested PartialObjectMetadataList, but the requested object is not a list", p == forList
	}
	return a, "", false
}

// streamTypes returns the media types of watches. YAML is not one: a reader cannot see where its documents end.
func streamTypes() []string {
	return []string{typeJSON + ";stream=watch", typeProtobuf + ";stream=watch"}
}

func onlyThese(types ...string) string {
	return "only the following media types are accepted: " + strings.Join(types, ", ")
}

// unknownMedia is the 406 for an Accept header that names no media type of this server.
func unknownMedia(streams bool) error {
	types := allTypes()
	if streams {
		types = append(types, streamTypes()...)
	}
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(types, ", "))
}

func unsupportedMedia(types ...string) error {
	return plainError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(types, ", "))
}

// statusError is a failure of the request's path or method. Kubernetes gives these empty details.
func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
			Details: &metav1.StatusDetails{}}}
}

func plainError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// wantsPretty reports whether people will read the JSON: the client asks for it, or is a browser or a command-line HTTP
// client. It parses the query only if that can have the parameter, also in an escaped form: most requests have none.
func wantsPretty(r *http.Request) bool {
	if query := r.URL.RawQuery; strings.Contains(query, "pretty=") || strings.Contains(query, "%") {
		if values := r.URL.Query(); values.Has("pretty") {
			return isTrue(values["pretty"])
		}
	}
	agent := r.Header.Get("User-Agent")
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}
