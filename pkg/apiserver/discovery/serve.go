package discovery

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/request"
)

const (
	jsonType  = "application/json"
	yamlType  = "application/yaml"
	protoType = "application/vnd.kubernetes.protobuf"
	// aggregatedParams follow the content type of an aggregated document.
	aggregatedParams = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// Serve answers a GET for r.URL.Path and reports whether the path is a discovery document; if not, nothing was written.
func (d *Discovery) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	docs, err := d.documents()
	if err != nil {
		return true, err
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	doc, ok := docs.legacy[path]
	if !ok {
		return false, nil
	}
	accepted, ok := accept(r.Header.Get("Accept"), path == "/api" || path == "/apis")
	if !ok {
		return true, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", schema.GroupResource{}, "",
			"only the following media types are accepted: "+jsonType+", "+yamlType+", "+protoType, 0, false)
	}
	w.Header().Set("Vary", "Accept")
	if accepted.aggregated {
		doc = docs.aggregated[path]
		w.Header().Set("ETag", strconv.Quote(doc.etag))
		w.Header().Set("Cache-Control", "public")
		if matches(r.Header.Get("If-None-Match"), doc.etag) {
			w.WriteHeader(http.StatusNotModified)
			return true, nil
		}
	}
	return true, write(w, r, doc, accepted)
}

func write(w http.ResponseWriter, r *http.Request, doc document, a acceptance) error {
	body, contentType := doc.json, a.media
	switch a.media {
	case protoType:
		body = doc.proto
	case yamlType:
		var err error
		if body, err = yaml.JSONToYAML(doc.json); err != nil {
			return err
		}
	}
	if a.aggregated {
		contentType += aggregatedParams
	}
	if audit := request.AuditOf(r.Context()); audit != nil {
		audit.Respond(a.media, body)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
	return nil
}

// acceptance is what a client gets: the media type, and whether in the aggregated form.
type acceptance struct {
	media      string
	aggregated bool
}

// accept takes the first clause of an Accept header that can be served; ok is false if none can. Aggregated documents
// exist only at the roots, and in the version v2.
func accept(header string, root bool) (a acceptance, ok bool) {
	if strings.TrimSpace(header) == "" {
		return acceptance{media: jsonType}, true
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil || params["q"] == "0" {
			continue
		}
		a := acceptance{media: media}
		switch media {
		case jsonType, protoType, yamlType:
		case "*/*", "application/*":
			a.media = jsonType
		default:
			continue
		}
		if as := params["as"]; as != "" {
			if !root || as != "APIGroupDiscoveryList" || params["g"] != "apidiscovery.k8s.io" || params["v"] != "v2" {
				continue
			}
			a.aggregated = true
		}
		return a, true
	}
	return acceptance{}, false
}

// matches is If-None-Match with a list of quoted tags or "*".
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || strings.Trim(tag, `"`) == etag {
			return tag != ""
		}
	}
	return false
}
