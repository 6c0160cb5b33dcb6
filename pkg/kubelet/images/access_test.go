package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/runtime"
)

// private is a pull secret of a name, with a password.
func private(name, password string) corev1.Secret {
	return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{
			corev1.DockerConfigJsonKey: []byte(`{"auths":{"reg.example":{"username":"u","password":"` + password +
				`"}}}`)}}
}

// provided gives every pod with a service account a credential of it.
type provided struct{}

func hash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func (provided) Credentials(_ context.Context, pod *corev1.Pod, _ string) []Credential {
	if pod.Spec.ServiceAccountName == "" {
		return nil
	}
	return []Credential{{Account: &Coordinates{"uid-" + pod.Spec.ServiceAccountName, "ns",
		pod.Spec.ServiceAccountName}}}
}

// node is a node with one directory of records over restarts of its kubelet.
type node struct {
	t       *testing.T
	dir     string
	policy  Verification
	service *service
	// checks are what came of looks at what is present; records how many pulls and images were noted at the end.
	checks  []Check
	records [2]int
}

// uses asks for the image reg.example/x:1 as a kubelet that has just been started, and says how often it was pulled for
// that.
func (n *node) uses(policy corev1.PullPolicy, account string, secrets ...corev1.Secret) (pulls int, err error) {
	n.t.Helper()
	r, err := OpenRecords(n.dir, time.Now)
	if err != nil {
		n.t.Fatal(err)
	}
	m := New(Config{Service: n.service, Records: r, Verification: n.policy, Checked: func(c Check) {
		n.checks = append(n.checks, c)
	}, Providers: provided{}, Log: slog.New(slog.DiscardHandler),
		Account: func(_ context.Context, ns, name string) (*corev1.ServiceAccount, error) {
			return &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name)}}, nil
		}})
	before := len(n.service.auths)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PodSpec{ServiceAccountName: account}}
	_, err = m.Ensure(n.t.Context(), pod, "reg.example/x:1", policy, secrets, func(_, _, _ string) {})
	n.records[0], n.records[1] = r.Count()
	return len(n.service.auths) - before, err
}

func newNode(t *testing.T, policy kubeletconfig.ImagePullCredentialsVerificationPolicy, preloaded bool,
	allow ...string) *node {
	return &node{t: t, dir: t.TempDir(), policy: Verification{policy, allow},
		service: &service{present: map[string]bool{"reg.example/x:1": preloaded}}}
}

// TestWhoMayUseAnImage: an image that one pod's credentials brought is no other pod's that has none of them
// (https://kubernetes.io/docs/concepts/containers/images/#ensureimagepullcredentialverification).
func TestWhoMayUseAnImage(t *testing.T) {
	t.Parallel()
	n := newNode(t, kubeletconfig.NeverVerifyPreloadedImages, false)
	is := func(what string, want int, policy corev1.PullPolicy, account string, secrets ...corev1.Secret) {
		t.Helper()
		if got, err := n.uses(policy, account, secrets...); got != want || err != nil {
			t.Errorf("%s: %d pulls, %v", what, got, err)
		}
	}
	is("the first pod", 1, corev1.PullIfNotPresent, "", private("a", "secret"))
	is("a pod with its secret", 0, corev1.PullIfNotPresent, "", private("a", "secret"))
	is("another secret of the same content", 0, corev1.PullIfNotPresent, "", private("b", "secret"))
	is("the same secret of another content", 1, corev1.PullIfNotPresent, "", private("a", "other"))
	is("an account", 1, corev1.PullIfNotPresent, "sa")
	is("the same account", 0, corev1.PullIfNotPresent, "sa")
	is("another account", 1, corev1.PullIfNotPresent, "sb")
	n.service.fail = true
	if pulls, err := n.uses(corev1.PullIfNotPresent, ""); err == nil || pulls != 1 {
		t.Errorf("a pod without any: %d pulls, %v", pulls, err)
	}
	var ie *Error
	if pulls, err := n.uses(corev1.PullNever,
		""); !errors.As(err, &ie) || ie.Reason != ReasonErrImageNeverPull || pulls != 0 {
		t.Errorf("a pod without any that never pulls: %d pulls, %v", pulls, err)
	}
	n.service.fail = false
	is("what needs no credential", 1, corev1.PullIfNotPresent, "")
	is("then nobody needs one", 0, corev1.PullNever, "", private("c", "wrong"))
	is("pulled always", 1, corev1.PullAlways, "")
	const found, pull = checkFound, checkPull
	if want := []Check{found, found, pull, pull, found, pull, pull, pull, pull, found}; !slices.Equal(n.checks, want) {
		t.Errorf("checks %v, want %v", n.checks, want)
	}
	if n.records != [2]int{0, 1} {
		t.Errorf("pulls and images noted: %v", n.records)
	}
}

// TestChecks: what needs no credential is told apart from what cannot be found out.
func TestChecks(t *testing.T) {
	t.Parallel()
	n := newNode(t, kubeletconfig.NeverVerifyPreloadedImages, true)
	for range 2 { // the second time the record of the image is a directory
		if _, err := n.uses(corev1.PullIfNotPresent, ""); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRecords(n.dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(r.file("pulled", "reg.example/x:1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if want := []Check{checkAllowed, checkFailed}; !slices.Equal(n.checks, want) {
		t.Errorf("checks %v, want %v", n.checks, want)
	}
}

// TestVerificationPolicies: which images a pod may use that came to the node otherwise.
func TestVerificationPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy kubeletconfig.ImagePullCredentialsVerificationPolicy
		allow  []string
		pulls  int
	}{
		{kubeletconfig.NeverVerify, nil, 0},
		{kubeletconfig.NeverVerifyPreloadedImages, nil, 0},
		{kubeletconfig.NeverVerifyAllowlistedImages, []string{"reg.example/x"}, 0},
		{kubeletconfig.NeverVerifyAllowlistedImages, []string{"reg.example/*"}, 0},
		{kubeletconfig.NeverVerifyAllowlistedImages, []string{"reg.example/xy", "reg.example/x/*"}, 1},
		{kubeletconfig.AlwaysVerify, nil, 1},
	} {
		n := newNode(t, c.policy, true, c.allow...)
		if err := n.policy.Check(); err != nil {
			t.Error(err)
		}
		if got, err := n.uses(corev1.PullIfNotPresent, ""); got != c.pulls || err != nil {
			t.Errorf("%s %v: %d pulls, %v", c.policy, c.allow, got, err)
		}
	}
	for _, v := range []Verification{{"", nil}, {"x", nil}, {kubeletconfig.NeverVerify, []string{"a"}},
		{kubeletconfig.NeverVerifyAllowlistedImages, nil},
		{kubeletconfig.NeverVerifyAllowlistedImages, []string{"reg.example/a:1"}},
		{kubeletconfig.NeverVerifyAllowlistedImages, []string{"reg.example/*/a"}}} {
		if v.Check() == nil {
			t.Errorf("%+v is accepted", v)
		}
	}
}

// TestKilledWhilePulling: an image whose pull was begun is no preloaded one, also if the kubelet ended before it could
// record it.
func TestKilledWhilePulling(t *testing.T) {
	t.Parallel()
	n := newNode(t, kubeletconfig.NeverVerifyPreloadedImages, true)
	r, err := OpenRecords(n.dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Pulling("reg.example/x:1"); err != nil {
		t.Fatal(err)
	}
	if got, err := n.uses(corev1.PullIfNotPresent, "", private("a", "s")); got != 1 || err != nil {
		t.Errorf("%d pulls, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(n.dir, "pulling", "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestRecords: the files are upstream's, two pulls of one name at once keep one note, and what is gone is forgotten.
func TestRecords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0).UTC()
	dir := t.TempDir()
	r, err := OpenRecords(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "pulling", "sha256-"+hash("busybox:1"))
	record := filepath.Join(dir, "pulled", "sha256-"+hash("sha256:abc"))
	if err := errors.Join(r.Pulling("busybox:1"), r.Pulling("busybox:1"), r.Pulled("busybox:1", "", nil)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(note); err != nil ||
		string(text) != `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"busybox:1"}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := r.Pulled("busybox:1", "sha256:abc", &Credential{Secret: &Coordinates{"u", "ns", "n"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(note); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	text, err := os.ReadFile(record)
	if err != nil || !strings.HasPrefix(string(text),
		`{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"1970-01-01T00:16:40Z","imageRef":"sha256:abc",`+
			`"credentialMapping":{"docker.io/library/busybox":{"kubernetesSecrets":[{"uid":"u","namespace":"ns","name":"n","credentialHash":"`) {
		t.Errorf("%s, %v", text, err)
	}
	if err := r.prune(nil, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(record); err != nil {
		t.Error("forgotten although written since:", err)
	}
	present := []runtime.Image{{ID: "sha256:abc"}}
	if err := errors.Join(r.prune(present, now.Add(time.Minute)), r.prune(nil, now)); err != nil {
		t.Fatal(err)
	}
	if err := r.prune(nil, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(record); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an image that is gone is remembered:", err)
	}
}

// TestUnreadableRecord: an image whose record cannot be read does not become one that every pod may use.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r, err := OpenRecords(t.TempDir(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.file("pulled", "sha256:abc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.prune([]runtime.Image{{ID: "sha256:abc"}}, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rec, _, err := r.Get("busybox:1", "sha256:abc"); err == nil {
		t.Errorf("the image counts as preloaded: %v", rec)
	}
	if err := r.prune(nil, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, pulled := r.Count(); pulled != 0 {
		t.Errorf("%d records of images that are gone", pulled)
	}
}

// TestRecordsAreBounded: users may invent secrets without end.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	var c kubeletconfig.ImagePullCredentials
	for i := range 3 * maxCredentials {
		c = merged(c, &Credential{Secret: &Coordinates{string(rune('a' + i)), "ns", "n"}})
		c = merged(c, &Credential{Account: &Coordinates{string(rune('a' + i)), "ns", "n"}})
	}
	if len(c.KubernetesSecrets) != maxCredentials || len(c.KubernetesServiceAccounts) != maxCredentials {
		t.Errorf("%d secrets, %d accounts", len(c.KubernetesSecrets), len(c.KubernetesServiceAccounts))
	}
}
