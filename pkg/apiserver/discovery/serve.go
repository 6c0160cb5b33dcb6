package discovery

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// aggregatedType is the content type of an aggregated document.
func aggregatedType(base, version string) string {
	return base + ";g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList"
}

const (
	jsonType  = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
)

// Serve answers a GET for r.URL.Path and tells whether the path is a discovery document; if not, nothing was written.
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
	accepted := accept(r.Header.Get("Accept"), path == "/api" || path == "/apis")
	if accepted.version != "" {
		doc, ok = docs.aggregated[path+" "+accepted.version]
		if !ok {
			return false, nil
		}
		w.Header().Set("ETag", strconv.Quote(doc.etag))
		w.Header().Set("Cache-Control", "public")
	}
	w.Header().Set("Vary", "Accept")
	if accepted.version != "" && matches(r.Header.Get("If-None-Match"), doc.etag) {
		w.WriteHeader(http.StatusNotModified)
		return true, nil
	}
	write(w, r, doc, accepted)
	return true, nil
}

func write(w http.ResponseWriter, r *http.Request, doc document, a acceptance) {
	body, base := doc.json, jsonType
	if a.proto {
		body, base = doc.proto, protoType
	}
	if a.version != "" {
		base = aggregatedType(base, a.version)
	}
	w.Header().Set("Content-Type", base)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// acceptance is what a client wants: version is "v2" or "v2beta1" for the aggregated form, "" for the legacy one.
type acceptance struct {
	version string
	proto   bool
}

// accept takes the first clause of an Accept header that can be served. Unknown clauses are passed over; with none left
// the answer is legacy JSON. Aggregated documents exist only at the roots.
func accept(header string, root bool) acceptance {
	for clause := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil || params["q"] == "0" {
			continue
		}
		var a acceptance
		switch media {
		case jsonType, "*/*", "application/*":
		case protoType:
			a.proto = true
		default:
			continue
		}
		if as := params["as"]; as != "" {
			v := params["v"]
			if !root || as != "APIGroupDiscoveryList" || params["g"] != "apidiscovery.k8s.io" || (v != "v2" && v != "v2beta1") {
				continue
			}
			a.version = v
		}
		return a
	}
	return acceptance{}
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
