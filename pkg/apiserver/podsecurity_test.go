package apiserver_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/namespacelifecycle"
	"bonsai/pkg/apiserver/admission/podsecurity"
	"bonsai/pkg/apiserver/assemble"
)

var generatedPod = regexp.MustCompile(`gen-[a-z0-9]{5}`)

// TestPodSecurityReplay asks what a real kube-apiserver v1.36.3 was asked, one request after the other, and expects its codes, messages and
// warnings.
func TestPodSecurityReplay(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/podsecurity.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Method, Path, Type, Body string
		Code                     int
		Message                  string
		Warnings                 []string
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	url := start(t, func(c *assemble.Config) {
		namespaces := late(c, "", "namespaces")
		c.Parts.Admission = admission.NewChain(namespacelifecycle.New(namespaces),
			podsecurity.New(podsecurity.Config{Namespaces: namespaces, Pods: late(c, "", "pods"), Now: time.Now}))
		withBehaviours(t, c)
	})
	admin := asker{plain("admin"), url}
	for _, c := range all {
		code, header, body := admin.call(t, c.Method, c.Path, c.Body, c.Type)
		var status struct{ Kind, Message string }
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatalf("%s %s: %v", c.Method, c.Path, err)
		}
		message := ""
		if status.Kind == "Status" {
			message = generatedPod.ReplaceAllString(status.Message, "gen-*")
		}
		if code != c.Code || message != c.Message || !slices.Equal(header["Warning"], c.Warnings) {
			t.Errorf("%s %s %s:\n got %d %s %q\nwant %d %s %q", c.Method, c.Path, c.Body, code, message, header["Warning"], c.Code, c.Message, c.Warnings)
		}
	}
}
