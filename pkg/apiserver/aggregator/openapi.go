package aggregator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSchema is how large an OpenAPI document of another server may be, in bytes.
const maxSchema = 8 << 20

// Schema is the OpenAPI v2 document of another server, as JSON. Only the paths below Prefix are that server's own.
type Schema struct {
	Prefix string
	JSON   []byte
}

// available are the APIServices of other servers that can be asked.
func (a *Aggregator) available() []*Service {
	now := a.Index()
	if now.remotes == 0 {
		return nil
	}
	var out []*Service
	for _, s := range now.services {
		if s.remote != nil && s.Available() {
			out = append(out, s)
		}
	}
	return out
}

// each asks all servers that can be asked at the same time, and returns what they say in their order: nil if that is
// not known, empty if they have no such document.
func (a *Aggregator) each(ctx context.Context, path string, of func(*remote) *later) ([]*Service, [][]byte) {
	list := a.available()
	bodies := make([][]byte, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			bodies[i] = a.said(ctx, s.remote, of(s.remote), path)
		})
	}
	wg.Wait()
	return list, bodies
}

// said is what a server said last of a document.
func (a *Aggregator) said(ctx context.Context, r *remote, of *later, path string) []byte {
	return of.get(ctx, r.life, a.cfg.Now, func(ctx context.Context) ([]byte, error) { return a.document(ctx, r, path) })
}

// document asks a server for a document. One that it does not have is empty.
func (a *Aggregator) document(ctx context.Context, r *remote, path string) ([]byte, error) {
	addresses, err := a.cfg.Cluster.addresses(ctx, r.spec.Service)
	if err != nil {
		return nil, err
	}
	code, body, err := a.get(ctx, r, &url.URL{Scheme: "https", Host: addresses[0], Path: path}, "application/json",
		maxSchema)
	switch {
	case err != nil:
		return nil, err
	case code == http.StatusNotFound:
		return []byte{}, nil
	case code != http.StatusOK:
		return nil, fmt.Errorf("%s: %d", path, code)
	}
	return body, nil
}

// OpenAPIV2 are the documents of all servers that have one, and a mark that is another one whenever they are others.
func (a *Aggregator) OpenAPIV2(ctx context.Context) (mark string, schemas []Schema) {
	list, bodies := a.each(ctx, "/openapi/v2", func(r *remote) *later { return &r.openapiV2 })
	h := sha256.New()
	for i, s := range list {
		if len(bodies[i]) == 0 {
			continue
		}
		prefix := "/apis/" + s.Object.Spec.Group + "/" + s.Object.Spec.Version + "/"
		schemas = append(schemas, Schema{prefix, bodies[i]})
		fmt.Fprintf(h, "%s %x\n", prefix, sha256.Sum256(bodies[i]))
	}
	if schemas == nil {
		return "", nil
	}
	return fmt.Sprintf("%x", h.Sum(nil)), schemas
}

// OpenAPIV3 is what other servers say of the documents of their group versions: marks of their content. Of a server
// that has only a document of v2 it is the mark of that.
func (a *Aggregator) OpenAPIV3(ctx context.Context) map[schema.GroupVersion]string {
	list, bodies := a.each(ctx, "/openapi/v3", func(r *remote) *later { return &r.openapiV3 })
	out := map[schema.GroupVersion]string{}
	for i, s := range list {
		if bodies[i] != nil && len(bodies[i]) == 0 {
			if mark, v2 := a.OnlyV2(ctx, s.GroupVersion()); v2 != nil {
				out[s.GroupVersion()] = mark
			}
			continue
		}
		var index struct {
			Paths map[string]struct {
				ServerRelativeURL string `json:"serverRelativeURL"`
			} `json:"paths"`
		}
		if json.Unmarshal(bodies[i], &index) != nil {
			continue
		}
		gv := s.GroupVersion()
		if entry, ok := index.Paths["apis/"+gv.Group+"/"+gv.Version]; ok {
			if at, err := url.Parse(entry.ServerRelativeURL); err == nil {
				out[gv] = at.Query().Get("hash")
			}
		}
	}
	return out
}

// OnlyV2 is the OpenAPI v2 document of the server of a group version, if it has none of v3, and a mark of its content;
// nil: it has one, or is not known to have none.
func (a *Aggregator) OnlyV2(ctx context.Context, gv schema.GroupVersion) (mark string, v2 []byte) {
	s := a.Index().Of(gv)
	if s == nil || s.remote == nil || !s.Available() {
		return "", nil
	}
	if index := a.said(ctx, s.remote, &s.remote.openapiV3, "/openapi/v3"); index == nil || len(index) > 0 {
		return "", nil
	}
	if v2 = a.said(ctx, s.remote, &s.remote.openapiV2, "/openapi/v2"); len(v2) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%x", sha256.Sum256(v2)), v2
}

// Remote reports whether another server serves a group version, and tells of it.
func (a *Aggregator) Remote(gv schema.GroupVersion) bool { return a.Index().Of(gv) != nil }

// ProxyOpenAPI answers for the OpenAPI v3 document of a group version that another server serves, and reports whether
// it is one; if not, or if that server has only v2, nothing was written.
func (a *Aggregator) ProxyOpenAPI(w http.ResponseWriter, r *http.Request) bool {
	path, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/openapi/v3/apis/")
	if !ok {
		return false
	}
	group, version, _ := strings.Cut(path, "/")
	gv := schema.GroupVersion{Group: group, Version: version}
	s := a.Index().Of(gv)
	if s == nil {
		return false
	}
	if _, v2 := a.OnlyV2(r.Context(), gv); v2 != nil {
		return false
	}
	a.handOn(w, r, s, false)
	return true
}
