package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"bonsai/pkg/apiserver/catalog"
)

// The protobuf forms' media types, as old and new clients spell them.
const (
	jsonType    = "application/json"
	v2ProtoType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	v3ProtoType = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// Serve answers a GET for r.URL.Path and reports whether the path is one of its own; if not, or on an error, nothing
// was written. Documents are kept by what is in them: a change of the catalog rebuilds only those that it concerns.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	path, now := strings.TrimSuffix(r.URL.Path, "/"), s.cfg.Catalog.Snapshot()
	switch {
	case path == "/openapi/v2":
		key := path + " " + strconv.FormatUint(now.Generation(), 10)
		var remotes []Remote
		if s.cfg.Remotes != nil {
			var mark string
			mark, remotes = s.cfg.Remotes.V2(r.Context())
			key += " " + mark
		}
		return true, s.serve(w, r, key, v2ProtoType, func() ([]byte, error) {
			return s.buildMerged(now, remotes)
		}, parseV2)
	case path == "/openapi/v3":
		return true, s.serveIndex(w, r, now)
	}
	group, ok := strings.CutPrefix(path, "/openapi/v3/")
	if !ok {
		return false, nil
	}
	if o, ok := s.documents(now)[group]; ok {
		return true, s.serve(w, r, path, v3ProtoType, func() ([]byte, error) { return s.buildDocument(o) }, parseV3)
	}
	gv, ok := groupVersionOf(group)
	if !ok {
		return false, nil
	}
	if s.cfg.Remotes != nil {
		if mark, v2 := s.cfg.Remotes.OnlyV2(r.Context(), gv); v2 != nil {
			return true, s.serve(w, r, path+" converted "+mark, v3ProtoType, func() ([]byte, error) {
				return convert(v2)
			}, parseV3)
		}
	}
	if len(now.Routes(gv)) == 0 {
		return false, nil
	}
	return true, s.serve(w, r, path+" "+s.hash(now, gv), v3ProtoType, func() ([]byte, error) {
		return s.buildV3(now, gv)
	}, parseV3)
}

// serve writes one document in the form that the client takes.
func (s *Service) serve(w http.ResponseWriter, r *http.Request, key, protoType string, build func() ([]byte, error),
	parse func([]byte) ([]byte, error)) error {
	asProto, contentType, ok := accept(r.Header.Get("Accept"), protoType)
	if !ok {
		w.Header().Set("Vary", "Accept")
		w.WriteHeader(http.StatusNotAcceptable)
		return nil
	}
	d, err := s.get(key, build)
	if err == nil && asProto {
		d, err = s.get(key+" protobuf", func() ([]byte, error) {
			raw, err := build()
			if err != nil {
				return nil, err
			}
			return parse(raw)
		})
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	h.Set("ETag", strconv.Quote(d.etag))
	h.Set("Content-Type", contentType)
	if r.URL.Query().Get("hash") == "" {
		h.Set("Cache-Control", "no-cache, private")
	} else {
		h.Set("Cache-Control", "public, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), d.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return d.write(w, r)
}

// write sends the kept bytes as they are to a client that takes gzip. Once it has begun, errors are the connection's.
func (d *document) write(w http.ResponseWriter, r *http.Request) error {
	zipped := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if zipped {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(d.gz)))
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if zipped {
		_, _ = w.Write(d.gz)
		return nil
	}
	_ = d.plain(w)
	return nil
}

// accept chooses between JSON and protobuf by the client's order of preference. contentType repeats the client's
// spelling.
func accept(header, protoType string) (asProto bool, contentType string, ok bool) {
	if header == "" {
		return false, jsonType, true
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, _, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil {
			// "application/…spec.v2@v1.0+protobuf" is what old clients send; "@" is no token of RFC 2045.
			media, _, _ = strings.Cut(strings.TrimSpace(clause), ";")
		}
		switch strings.Replace(media, "@", ".", 1) {
		case jsonType, "*/*", "application/*":
			return false, jsonType, true
		case protoType:
			return true, protoType, true
		}
	}
	return false, "", false
}

func parseV2(raw []byte) ([]byte, error) {
	doc, err := openapi_v2.ParseDocument(raw)
	if err != nil {
		return nil, fmt.Errorf("reading it as OpenAPI v2: %w", err)
	}
	return proto.Marshal(doc)
}

func parseV3(raw []byte) ([]byte, error) {
	doc, err := openapi_v3.ParseDocument(raw)
	if err != nil {
		return nil, fmt.Errorf("reading it as OpenAPI v3: %w", err)
	}
	return proto.Marshal(doc)
}

// serveIndex writes the list of v3 documents. A URL's hash names the resources and the version of the server, which
// together decide a document's content; of another server's document it is what that one says.
func (s *Service) serveIndex(w http.ResponseWriter, r *http.Request, now *catalog.Snapshot) error {
	type entry struct {
		URL string `json:"serverRelativeURL"`
	}
	paths := map[string]entry{}
	add := func(path, hash string) {
		paths[path] = entry{"/openapi/v3/" + path + "?hash=" + hash}
	}
	for path, hash := range s.hashes(now) {
		if gv, ok := groupVersionOf(path); !ok || s.cfg.Remotes == nil || !s.cfg.Remotes.Serves(gv) {
			add(path, hash)
		}
	}
	if s.cfg.Remotes != nil {
		for gv, hash := range s.cfg.Remotes.V3(r.Context()) {
			add(groupPath(gv), url.QueryEscape(hash))
		}
	}
	raw, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		return fmt.Errorf("encoding the list of OpenAPI documents: %w", err)
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(raw)
	}
	return nil
}

// hashes are those of all that is served here. The map is shared.
func (s *Service) hashes(now *catalog.Snapshot) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.entries != nil && s.index.generation == now.Generation() {
		return s.index.entries
	}
	entries := map[string]string{}
	for path := range s.documents(now) {
		entries[path] = fmt.Sprintf("%X", sha512.Sum512([]byte(s.cfg.Version+" "+path)))
	}
	for _, gv := range now.GroupVersions() {
		entries[groupPath(gv)] = s.hash(now, gv)
	}
	s.index = index{now.Generation(), entries}
	return entries
}
