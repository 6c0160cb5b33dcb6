// Package archiveregistry serves images from archives on disk as a read-only registry, so that a node's runtime takes
// what it needs when it needs it. It speaks the pull part of the OCI distribution specification
// (https://github.com/opencontainers/distribution-spec/blob/main/spec.md): manifests by tag and digest, and blobs, with
// ranges.
package archiveregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// digestHeader tells the client the digest of what it gets (distribution specification, "Pulling manifests").
const digestHeader = "Docker-Content-Digest"

// New serves the image of each archive DIR/NAME.tar, for the names given, as the repository NAME. An archive is opened
// again for each request, so that one that is replaced is served as it is then.
func New(dir string, names []string, log *slog.Logger) http.Handler {
	archives := map[string]string{}
	for _, name := range names {
		archives[name] = filepath.Join(dir, name+".tar")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(http.ResponseWriter, *http.Request) {})
	// serve answers with what find takes of the repository's archive, or with the code of the specification for what is
	// not there.
	serve := func(code string, find func(w http.ResponseWriter, r *http.Request, a *archive) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			path, ok := archives[r.PathValue("name")]
			if !ok {
				refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "there is no image of that name here")
				return
			}
			a, err := open(path)
			if err == nil {
				defer a.Close()
				err = find(w, r, a)
			}
			switch {
			case errors.Is(err, errUnknown), errors.Is(err, fs.ErrNotExist):
				refuse(w, http.StatusNotFound, code, "the image has nothing of that name")
			case err != nil:
				log.Error("cannot serve an image", "archive", path, "err", err)
				refuse(w, http.StatusInternalServerError, "UNKNOWN", "the image's archive cannot be read")
			}
		}
	}
	mux.HandleFunc("GET /v2/{name}/manifests/{reference}", serve("MANIFEST_UNKNOWN", manifest))
	mux.HandleFunc("GET /v2/{name}/blobs/{digest}", serve("BLOB_UNKNOWN", blob))
	return mux
}

// refuse answers with the specification's form of an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	json.NewEncoder(w).Encode(map[string][]fault{"errors": {{code, message}}})
}

func manifest(w http.ResponseWriter, r *http.Request, a *archive) error {
	content, err := a.manifest()
	if err != nil {
		return err
	}
	digest, reference := digestOf(content), r.PathValue("reference")
	if reference != digest && !a.tagged(reference) {
		return errUnknown
	}
	w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
	w.Header().Set(digestHeader, digest)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return nil
}

func blob(w http.ResponseWriter, r *http.Request, a *archive) error {
	digest := r.PathValue("digest")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(digestHeader, digest)
	if digest == digestOf(a.rawConfig) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.rawConfig))
		return nil
	}
	layer, err := a.layer(digest)
	if err != nil {
		w.Header().Del(digestHeader)
		return err
	}
	http.ServeContent(w, r, "", time.Time{}, layer)
	return nil
}

// descriptor says what a blob is (https://github.com/opencontainers/image-spec/blob/main/descriptor.md).
type descriptor struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
}

// manifest returns the image's OCI manifest. It is the same, byte for byte, for the same archive: its digest names it.
func (a *archive) manifest() ([]byte, error) {
	m := struct {
		SchemaVersion int             `json:"schemaVersion"`
		MediaType     types.MediaType `json:"mediaType"`
		Config        descriptor      `json:"config"`
		Layers        []descriptor    `json:"layers"`
	}{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: descriptor{types.OCIConfigJSON, digestOf(a.rawConfig), int64(len(a.rawConfig))},
	}
	for i, digest := range a.diffDigest {
		m.Layers = append(m.Layers, descriptor{types.OCIUncompressedLayer, digest, a.files[a.layers[i]].size})
	}
	return json.Marshal(m)
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
