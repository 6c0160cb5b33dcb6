package images

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
)

// The names of the OCI distribution specification.
var (
	routes = regexp.MustCompile(
		`^/v2/([a-z0-9]+(?:[._/-]+[a-z0-9]+)*)/(manifests|blobs)/([A-Za-z0-9_][A-Za-z0-9._:-]{0,127})$`)
	digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Handler serves the tree in dir with the pulling half of the OCI distribution protocol; anything else is refused. The
// name of the registry that a client meant does not matter, only the repository does.
func Handler(dir string) http.Handler {
	t := tree(dir)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry is read-only")
			return
		}
		if r.URL.Path == "/v2/" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{}")
			return
		}
		m := routes.FindStringSubmatch(r.URL.Path)
		if m == nil {
			refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "no such repository")
			return
		}
		t.serve(w, r, m[1], m[2], m[3])
	})
}

// serve answers one manifest or blob.
func (t tree) serve(w http.ResponseWriter, r *http.Request, repository, kind, reference string) {
	links := filepath.Join(string(t), repositoriesDir, repository, "_layers", linkDir(reference))
	unknown, contentType := "BLOB_UNKNOWN", "application/octet-stream"
	if kind == "manifests" {
		unknown, contentType = "MANIFEST_UNKNOWN", manifestType
		links = filepath.Join(string(t), repositoriesDir, repository, "_manifests", "tags", reference, "current")
		if digest.MatchString(reference) {
			links = filepath.Join(string(t), repositoriesDir, repository, "_manifests", "revisions", linkDir(reference))
		}
	}
	link, err := os.ReadFile(filepath.Join(links, "link"))
	if err != nil || !digest.Match(link) {
		refuse(w, http.StatusNotFound, unknown, "no "+kind+" "+reference+" in "+repository)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Docker-Content-Digest", string(link))
	w.Header().Set("ETag", `"`+string(link)+`"`)
	http.ServeFile(w, r, t.data(string(link)))
}

// refuse answers an error as the protocol words it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
}
