package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/api/apiextensions/referencetest"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

var recordPlugins = flag.Bool("record-plugins", false,
	"write testdata/plugins/answers with the real kube-apiserver of $REFERENCE_KUBE_APISERVER")

// pluginScenario is a server with some plug-ins, and what it is asked. In its files, $DIR is their directory, and $HOOK
// and $CA are where the image policy webhook of the tests is.
type pluginScenario struct {
	Enable  []string `json:"enable"`
	Disable []string `json:"disable,omitempty"`
	// Files are written before the server starts. admission.yaml is that of --admission-control-config-file.
	Files map[string]string `json:"files,omitempty"`
	// Within is how long the steps may take in all: buckets of events fill up with time. A slower run says nothing and
	// is made again.
	Within metav1.Duration `json:"within"`
	// Unready is a server that cannot become ready, as it may not write what it starts with.
	Unready bool         `json:"unready,omitempty"`
	Steps   []pluginStep `json:"steps"`
}

// pluginStep is one request.
type pluginStep struct {
	// Do is the method and the path, As the user: admin by default, or alice.
	Do   string `json:"do"`
	As   string `json:"as,omitempty"`
	Body any    `json:"body,omitempty"`
	Type string `json:"type,omitempty"`
	// Show are the fields of an object in the answer that count, with dots between their parts.
	Show []string `json:"show,omitempty"`
	// Until repeats the request until it is answered with this code: roles and annotations are seen a little later.
	Until int `json:"until,omitempty"`
}

// pluginAnswer is what a server answers.
type pluginAnswer struct {
	Code     int            `json:"code"`
	Reason   string         `json:"reason,omitempty"`
	Message  string         `json:"message,omitempty"`
	Causes   any            `json:"causes,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
	Fields   map[string]any `json:"fields,omitempty"`
}

// TestPluginAnswers asks what a real kube-apiserver v1.37.2 was asked with the same plug-ins and files, and expects its
// answers: every file in testdata/plugins is a scenario, and what was answered to it is in the file of the same name in
// answers. With -record-plugins it asks the real server instead, and writes those files.
func TestPluginAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/plugins/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			var s pluginScenario
			referencetest.Read(t, file, &s)
			dir := writePluginFiles(t, s.Files)
			answers := filepath.Join("testdata/plugins/answers", name+".yaml")
			if *recordPlugins {
				got, _ := playPlugins(t, startRealWith(t, dir, &s), &s)
				referencetest.Write(t, answers, got)
				return
			}
			t.Parallel()
			var want []pluginAnswer
			referencetest.Read(t, answers, &want)
			var got []pluginAnswer
			for took := time.Duration(-1); took < 0 || s.Within.Duration > 0 && took >= s.Within.Duration; {
				got, took = playPlugins(t, start(t, func(c *assemble.Config) { withPlugins(t, c, dir, &s) }), &s)
			}
			if len(want) != len(got) {
				t.Fatalf("%d steps, %d answers", len(got), len(want))
			}
			for i := range got {
				if g, w := plainJSON(t, got[i]), plainJSON(t, want[i]); !reflect.DeepEqual(g, w) {
					t.Errorf("step %d: %s %s\n%s", i, s.Steps[i].Do, referencetest.YAML(t, s.Steps[i].Body),
						referencetest.Difference(referencetest.YAML(t, w), referencetest.YAML(t, g)))
				}
			}
		})
	}
}

// writePluginFiles writes the files of a scenario into a directory, which it returns.
func writePluginFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	hook, dir := webhooktest.NewServer(t, http.HandlerFunc(reviewImages)), t.TempDir()
	fill := strings.NewReplacer("$HOOK", hook.URL, "$CA", base64.StdEncoding.EncodeToString(hook.CABundle), "$DIR", dir)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fill.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reviewImages is an image policy webhook. What it answers stands in the name of the first image.
func reviewImages(w http.ResponseWriter, r *http.Request) {
	var review imagepolicyv1alpha1.ImageReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || len(review.Spec.Containers) == 0 {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	image := review.Spec.Containers[0].Image
	switch {
	case strings.HasPrefix(image, "broken"):
		http.Error(w, "broken", http.StatusForbidden)
		return
	case strings.HasPrefix(image, "bad"):
		review.Status.Reason = "a bad image"
	case strings.HasPrefix(image, "mute"):
	case strings.HasPrefix(image, "echo"):
		spec, err := json.Marshal(review.Spec)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Status.Reason = string(spec)
	default:
		review.Status.Allowed = true
		review.Status.AuditAnnotations = map[string]string{"seen": image}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review) // the client may be gone
}

// withPlugins has the parts of Kubernetes, with the plug-ins of a scenario.
func withPlugins(t *testing.T, c *assemble.Config, dir string, s *pluginScenario) {
	t.Helper()
	file := filepath.Join(dir, "admission.yaml")
	if s.Files["admission.yaml"] == "" {
		file = ""
	}
	configured, err := assemble.LoadAdmissionConfiguration(file)
	if err != nil {
		t.Fatal(err)
	}
	withCountedParts(t, c, nil, func(o *assemble.Options) {
		o.EnableAdmission, o.DisableAdmission = s.Enable, slices.Concat(o.DisableAdmission, s.Disable)
		o.Admission = *configured
	})
}

// playPlugins takes a server through a scenario, and returns how long that took.
func playPlugins(t *testing.T, url string, scenario *pluginScenario) ([]pluginAnswer, time.Duration) {
	t.Helper()
	var began time.Time
	var out []pluginAnswer
	steps := scenario.Steps
	if !scenario.Unready {
		steps = append([]pluginStep{{Do: "GET /api/v1/namespaces/default", Until: http.StatusOK}}, steps...)
	}
	for i, s := range steps {
		if i == len(steps)-len(scenario.Steps) {
			began = time.Now()
		}
		method, path, ok := strings.Cut(s.Do, " ")
		if !ok {
			t.Fatalf("step %d does nothing: %q", i, s.Do)
		}
		var body string
		if s.Body != nil {
			b, err := json.Marshal(s.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(b)
		}
		token := map[string]string{"": "auditadm", "alice": "auditali"}[s.As]
		a := asker{plain(""), url}
		deadline := time.Now().Add(30 * time.Second)
		for {
			code, header, text := a.callWith(t, method, path, body, http.Header{"Content-Type": {media(s.Type)},
				"Authorization": {"Bearer " + token}})
			if s.Until == 0 || code == s.Until {
				out = append(out, pluginAnswered(t, code, header["Warning"], text, s.Show))
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("step %d: %s: waited in vain for %d, last was %d %s", i, s.Do, s.Until, code, text)
			}
		}
	}
	return out[len(steps)-len(scenario.Steps):], time.Since(began)
}

func pluginAnswered(t *testing.T, code int, warnings []string, text string, show []string) pluginAnswer {
	t.Helper()
	a := pluginAnswer{Code: code, Warnings: warnings}
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		a.Message = text
		return a
	}
	if doc["kind"] == "Status" {
		orderCauses(doc)
		a.Reason, _ = doc["reason"].(string)
		a.Message, _ = doc["message"].(string)
		a.Causes, _, _ = unstructured.NestedFieldNoCopy(doc, "details", "causes")
		return a
	}
	for _, path := range show {
		v, found, err := unstructured.NestedFieldNoCopy(doc, strings.Split(path, ".")...)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			if a.Fields == nil {
				a.Fields = map[string]any{}
			}
			a.Fields[path] = withoutTimes(v)
		}
	}
	return a
}

// startRealWith starts Kubernetes' own kube-apiserver with the plug-ins of a scenario, and returns its URL.
func startRealWith(t *testing.T, dir string, s *pluginScenario) string {
	t.Helper()
	flags := []string{"--disable-admission-plugins=" + strings.Join(append(s.Disable, "ServiceAccount"), ","),
		"--enable-admission-plugins=" + strings.Join(s.Enable, ",")}
	if s.Files["admission.yaml"] != "" {
		flags = append(flags, "--admission-control-config-file="+filepath.Join(dir, "admission.yaml"))
	}
	return startReal(t, s.Unready, flags...)
}
