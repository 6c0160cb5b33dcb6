package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	kmsapi "k8s.io/kms/apis/v2"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/storage/encryption"
	"bonsai/pkg/apiserver/storage/encryption/kmstest"
	"bonsai/pkg/referencetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secretKey = "/registry/secrets/default/s"

// b64 is a key of n bytes.
func b64(n int, fill byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, n))
}

// rule is a part of a file: resources with their providers, one a line.
func rule(resources string, providers ...string) string {
	return "- resources: [" + resources + "]\n  providers:\n  - " + strings.Join(providers, "\n  - ") + "\n"
}

func keyed(provider, name string, size int, fill byte) string {
	return fmt.Sprintf("%s: {keys: [{name: %s, secret: %s}]}", provider, name, b64(size, fill))
}

func kmsOf(p *kmstest.Plugin) string {
	return fmt.Sprintf("kms: {apiVersion: v2, name: test, endpoint: %q, timeout: 3s}", p.Endpoint)
}

func document(rules ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + strings.Join(rules, "")
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// started is an Encryption of a test.
type started struct {
	*encryption.Encryption
	file    string
	metrics *prometheus.Registry
}

func start(t testing.TB, text string) *started {
	t.Helper()
	s := &started{file: filepath.Join(t.TempDir(), "encryption.yaml"), metrics: prometheus.NewRegistry()}
	write(t, s.file, text)
	var err error
	s.Encryption, err = encryption.New(t.Context(), encryption.Config{File: s.file, Reload: true,
		Rows: rows.All(), ServerID: "apiserver-test", Metrics: s.metrics,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *started) seal(t testing.TB, key, value string) []byte {
	t.Helper()
	out, err := s.Transformer(key).Seal(t.Context(), []byte(key), []byte(value))
	if err != nil {
		t.Fatalf("seal %s: %v", key, err)
	}
	return out
}

// open opens what is stored; the error is a part of what is returned.
func (s *started) open(ctx context.Context, key string, stored []byte) string {
	value, stale, err := s.Transformer(key).Open(ctx, []byte(key), stored)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case stale:
		return string(value) + " (stale)"
	}
	return string(value)
}

// reloads is the number of reloads of that status.
func (s *started) reloads(t *testing.T, status string) float64 {
	families, err := s.metrics.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, f := range families {
		if f.GetName() != "apiserver_encryption_config_controller_automatic_reloads_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == status {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// TestProviders: values begin as Kubernetes has them, come back, and show none of their text.
func TestProviders(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a").Start(t)
	for provider, prefix := range map[string]string{
		keyed("aescbc", "k", 32, 1): "k8s:enc:aescbc:v1:k:", keyed("aescbc", "k", 16, 1): "k8s:enc:aescbc:v1:k:",
		keyed("aesgcm", "k", 24, 1): "k8s:enc:aesgcm:v1:k:", keyed("secretbox", "k", 32, 1): "k8s:enc:secretbox:v1:k:",
		kmsOf(plugin): "k8s:enc:kms:v2:test:", "identity: {}": "",
	} {
		s := start(t, document(rule("secrets", provider)))
		for _, size := range []int{0, 1, 15, 16, 17, 1000} {
			text := strings.Repeat("x", size)
			stored := s.seal(t, secretKey, text)
			if !bytes.HasPrefix(stored, []byte(prefix)) || prefix != "" && bytes.Contains(stored, []byte("xxxx")) {
				t.Errorf("%s: stored %.40q, want %s and no text", provider, stored, prefix)
			}
			if got := s.open(t.Context(), secretKey, stored); got != text {
				t.Errorf("%s: %d bytes came back as %.60q", provider, size, got)
			}
		}
	}
}

// TestMoved: a value under another key of the storage is refused by the providers that authenticate the key.
func TestMoved(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a").Start(t)
	for _, provider := range []string{keyed("aesgcm", "k", 32, 1), kmsOf(plugin)} {
		s := start(t, document(rule("secrets", provider)))
		stored := s.seal(t, secretKey, "text")
		if got := s.open(t.Context(), "/registry/secrets/default/other", stored); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: a value was moved to another key: %q", provider, got)
		}
	}
}

// TestOrder: the first key writes, all read, and what another one wrote is stale.
func TestOrder(t *testing.T) {
	t.Parallel()
	old := start(t, document(rule("secrets", keyed("aescbc", "one", 32, 1))))
	now := start(t, document(rule("secrets",
		fmt.Sprintf("aesgcm: {keys: [{name: two, secret: %s}, {name: three, secret: %s}]}", b64(32, 2), b64(16, 3)),
		keyed("aescbc", "one", 32, 9), keyed("aescbc", "one", 32, 1), "identity: {}")))
	third := start(t, document(rule("secrets", keyed("aesgcm", "three", 16, 3))))
	for stored, want := range map[string]string{
		string(now.seal(t, secretKey, "a")):   "a",
		string(third.seal(t, secretKey, "b")): "b (stale)",
		string(old.seal(t, secretKey, "c")):   "c (stale)",
		"plain":                               "plain (stale)",
		"k8s:enc:aesgcm:v1:nine:xxxx":         "error: no matching key was found for the provided AES transformer",
		"k8s:enc:secretbox:v1:nine:xxxx":      "error: no matching prefix found",
		"k8s:enc:kms:v1:nine:xxxx":            "error: no matching prefix found",
	} {
		if got := now.open(t.Context(), secretKey, []byte(stored)); got != want {
			t.Errorf("%.40q: %q, want %q", stored, got, want)
		}
	}
	if got := old.open(t.Context(), secretKey, []byte("plain")); got != "error: no matching prefix found" {
		t.Errorf("plain text is read without identity: %q", got)
	}
}

// TestResources: who is encrypted by which rule; "" is nobody.
func TestResources(t *testing.T) {
	t.Parallel()
	s := start(t, document(
		rule("secrets, crontabs.stable.example.com, services", keyed("aescbc", "some", 32, 1)),
		rule("events", "identity: {}"),
		rule("'*.apps', '*.'", keyed("aescbc", "group", 32, 1)),
		rule("leases.coordination.k8s.io", keyed("aescbc", "lease", 32, 1))))
	for key, want := range map[string]string{
		secretKey: "some", "/registry/secrets/kube-system/s": "some", "/registry/services/specs/default/x": "some",
		"/registry/services/endpoints/default/x": "group", "/registry/configmaps/default/x": "group",
		"/registry/stable.example.com/crontabs/default/x": "some", "/registry/stable.example.com/others/x": "",
		"/registry/deployments/default/x": "group", "/registry/leases/default/x": "lease",
		"/registry/events/default/x": "plain", "/registry/clusterroles/x": "", "/registry/masterleases/10.0.0.1": "group",
		"/registry/ranges/servicenodeports": "group", "/registry/minions/n1": "group", "/registry/secrets": "some",
	} {
		got := ""
		if s.Transformer(key) != nil {
			stored := s.seal(t, key, "x")
			got = "plain"
			if parts := strings.Split(string(stored), ":"); len(parts) > 4 {
				got = parts[4]
			}
		}
		if got != want {
			t.Errorf("%s is encrypted by %q, want %q", key, got, want)
		}
	}
	everything := start(t, document(rule("'*.*'", keyed("aesgcm", "all", 32, 1))))
	for _, key := range []string{secretKey, "/registry/clusterroles/x", "/registry/a.b/c/d"} {
		if everything.Transformer(key) == nil {
			t.Errorf("%s is not encrypted by *.*", key)
		}
	}
}

// TestBadFiles: files that are refused, with what is said.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	good := keyed("aescbc", "k", 32, 1)
	secrets := func(provider string) string { return document(rule("secrets", provider)) }
	of := func(resources string) string { return document(rule(resources, good)) }
	service := func(more string) string {
		return secrets("kms: {apiVersion: v2, name: a, endpoint: 'unix:///x'" + more + "}")
	}
	const keySize = `aescbc.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 15`
	for text, want := range map[string]string{
		"":  "is empty",
		"{": "error decoding",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: Other\n": `no kind "Other"`,
		"apiVersion: v1\nkind: EncryptionConfiguration\n":       `for version "v1"`,

		document():                            "resources: Required value",
		of("secrets") + "a: 1\n":              `strict decoding error: unknown field "a"`,
		secrets("aescbc: {keys: [{nam: x}]}"): `unknown field "resources[0].providers[0].aescbc.keys[0].nam"`,
		of(""):                                "resources[0].resources: Required value",
		document("- resources: [secrets]\n"):  "resources[0].providers: Required value",

		secrets("{}"):                                             "resources[0].providers[0]",
		secrets(good + "\n    identity: {}"):                      "more than one provider specified",
		secrets("aescbc: {keys: []}"):                             "providers[0].aescbc.keys: Required value",
		secrets(keyed("aescbc", "k", 15, 1)):                      keySize,
		secrets(keyed("secretbox", "k", 16, 1)):                   "expected one of [32]",
		secrets("aesgcm: {keys: [{name: k, secret: '???'}]}"):     "secrets must be base64 encoded",
		secrets("aesgcm: {keys: [{secret: " + b64(16, 1) + "}]}"): "aesgcm.keys[0].name: Required value",

		of("Secrets"):              "resource name should not contain capital letters",
		of("'*'"):                  "use '*.' to encrypt",
		of("'*.extensions'"):       "'extensions' group has been removed",
		of("events.events.k8s.io"): "Use 'events' instead",
		of("'secrets.*'"):          "encrypting the same resource across groups is not supported",
		of("secrets, secrets"):     "the same resource cannot be specified multiple times",
		of("secrets, '*.'"):        "using overlapping resources",
		of("'*.*', '*.apps'"):      "using overlapping resources",
		of("serviceipallocations"): "resources which do not have REST API/s cannot be encrypted",

		document(rule("'*.*'", good), rule("secrets", good)): `resource "secrets" is masked by earlier rule "*.*"`,

		service(", timeout: -1s"): "timeout should be a positive value",
		service(", cachesize: 3"): "cachesize is not supported in v2",
		secrets("kms: {apiVersion: v2, name: 'a:b', endpoint: 'unix:///x'}"): "must not contain ':'",
		secrets("kms: {apiVersion: v2, name: a, endpoint: 'tcp://x'}"):       `unsupported scheme "tcp"`,
		secrets("kms: {apiVersion: v3, name: a, endpoint: 'unix:///x'}"):     "unsupported apiVersion",
		secrets("kms: {name: a, endpoint: 'unix:///x'}"):                     "KMSv1 is deprecated",
		service("") + strings.TrimPrefix(service(""), document()):            "duplicate KMS provider name a",
	} {
		file := filepath.Join(t.TempDir(), "encryption.yaml")
		write(t, file, text)
		_, err := encryption.New(t.Context(), encryption.Config{File: file, Rows: rows.All(),
			Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q:\n%v\nwant %s and the file", text, err, want)
		}
	}
}

// TestReload: a changed file is in force soon, a bad one changes nothing, and both are counted.
func TestReload(t *testing.T) {
	t.Parallel()
	one, two := keyed("aesgcm", "one", 32, 1), keyed("aesgcm", "two", 32, 2)
	s := start(t, document(rule("secrets", one)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	before := s.seal(t, secretKey, "x")
	write(t, s.file, document(rule("secrets", keyed("aesgcm", "bad", 3, 2))))
	await(t, "a failed reload", func() bool { return s.reloads(t, "failure") == 1 })
	if got := s.open(ctx, secretKey, before); got != "x" {
		t.Errorf("after a bad file: %s", got)
	}
	write(t, s.file, document(rule("secrets", two, one)))
	await(t, "a reload", func() bool { return s.reloads(t, "success") == 1 })
	if got := s.open(ctx, secretKey, before); got != "x (stale)" {
		t.Errorf("after the reload: %s", got)
	}
	if stored := s.seal(t, secretKey, "x"); !bytes.HasPrefix(stored, []byte("k8s:enc:aesgcm:v1:two:")) {
		t.Errorf("after the reload, %.30q is stored", stored)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReloadBesideOthers: a file is reloaded soon, though another one in its directory changes all the time.
func TestReloadBesideOthers(t *testing.T) {
	t.Parallel()
	one, two := keyed("aesgcm", "one", 32, 1), keyed("aesgcm", "two", 32, 2)
	s := start(t, document(rule("secrets", one)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	write(t, s.file, document(rule("secrets", two, one)))
	other := filepath.Join(filepath.Dir(s.file), "other.log")
	await(t, "a reload", func() bool {
		write(t, other, time.Now().String())
		return s.reloads(t, "success") == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no %s", what)
		}
	}
}

// TestKMS: a plug-in that is down at the start, comes, changes its key, is slow, answers garbage, and goes.
func TestKMS(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a")
	s := start(t, document(rule("secrets", kmsOf(plugin), "identity: {}")))
	check := s.Checks()[0]
	healthy := func() string {
		if err := check.Run(request(t)); err != nil {
			return err.Error()
		}
		return ""
	}
	if _, err := s.Transformer(secretKey).Seal(t.Context(), []byte(secretKey), []byte("x")); err == nil {
		t.Fatal("a value was sealed without a plug-in")
	}
	if healthy() == "" {
		t.Error("healthy without a plug-in")
	}
	if got := s.open(t.Context(), secretKey, []byte("plain")); got != "plain (stale)" {
		t.Errorf("another provider's value without a plug-in: %s", got)
	}
	plugin.Start(t)
	await(t, "health", func() bool { return healthy() == "" })
	stored := s.seal(t, secretKey, "x")
	other := start(t, document(rule("secrets", kmsOf(plugin))))
	if other.Transformer(secretKey).AtHand(stored) {
		t.Error("another server's seed is at hand before the plug-in was asked")
	}
	for range 100 {
		if got := other.open(t.Context(), secretKey, stored); got != "x" {
			t.Fatalf("another server reads %q", got)
		}
	}
	if n := plugin.Decrypts.Load(); n != 1 || !other.Transformer(secretKey).AtHand(stored) {
		t.Errorf("%d calls for one seed", n)
	}
	testGarbage(t, plugin, stored)
	plugin.Stop()
	if got := other.open(t.Context(), secretKey, stored); got != "x" {
		t.Errorf("a known seed without the plug-in: %q", got)
	}
	if got := other.open(t.Context(), secretKey, other.seal(t, secretKey, "y")); got != "y" {
		t.Errorf("a write soon after the plug-in went: %q", got)
	}
}

// testGarbage: answers that are refused, each by a server that asks for the first time.
func testGarbage(t *testing.T, plugin *kmstest.Plugin, stored []byte) {
	for name, bad := range map[string]func(*kmstest.Behaviour){
		"slow":       func(b *kmstest.Behaviour) { b.Delay = time.Minute },
		"short seed": func(b *kmstest.Behaviour) { b.Decrypted = func(p []byte) []byte { return p[:31] } },
		"no seed":    func(b *kmstest.Behaviour) { b.Decrypted = func([]byte) []byte { return nil } },
		"huge seed":  func(b *kmstest.Behaviour) { b.Decrypted = func([]byte) []byte { return make([]byte, 1<<20) } },
		"wrong seed": func(b *kmstest.Behaviour) { b.Decrypted = func([]byte) []byte { return make([]byte, 32) } },
		"other key":  func(b *kmstest.Behaviour) { b.Encrypted = func(r *kmsapi.EncryptResponse) { r.KeyId = "z" } },
		"no key":     func(b *kmstest.Behaviour) { b.Status = func(r *kmsapi.StatusResponse) { r.KeyId = "" } },
		"not well": func(b *kmstest.Behaviour) {
			b.Status = func(r *kmsapi.StatusResponse) { r.Healthz = strings.Repeat("no", 9999) }
		},
		"old version": func(b *kmstest.Behaviour) { b.Status = func(r *kmsapi.StatusResponse) { r.Version = "v1" } },
		"long answer": func(b *kmstest.Behaviour) {
			b.Encrypted = func(r *kmsapi.EncryptResponse) { r.Ciphertext = make([]byte, 2000) }
		},
		"bad annotation": func(b *kmstest.Behaviour) {
			b.Encrypted = func(r *kmsapi.EncryptResponse) { r.Annotations = map[string][]byte{"a": nil} }
		},
	} {
		plugin.Set(bad)
		s := start(t, document(rule("secrets", kmsOf(plugin))))
		seals := strings.HasSuffix(name, "seed")
		_, err := s.Transformer(secretKey).Seal(t.Context(), []byte(secretKey), []byte("x"))
		if (err == nil) != seals {
			t.Errorf("%s: sealing says %v", name, err)
		}
		got := s.open(t.Context(), secretKey, stored)
		if (seals || name == "slow") && !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: opened to %q", name, got)
		}
		if err := s.Checks()[0].Run(request(t)); (err == nil) != seals || err != nil && len(err.Error()) > 2000 {
			t.Errorf("%s: health says %v", name, err)
		}
		plugin.Set(func(b *kmstest.Behaviour) { *b = kmstest.Behaviour{KeyID: "a"} })
	}
}

// TestReloadKMS: a file that moves Secrets to a KMS provider is in force when its plug-in is healthy, and not before.
// The values of before are read and stale. A later file takes the provider away again, without values that need it.
func TestReloadKMS(t *testing.T) {
	t.Parallel()
	local := keyed("secretbox", "k", 32, 1)
	s := start(t, document(rule("secrets", local)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	before := s.seal(t, secretKey, "x")
	plugin := kmstest.New(t, "a")
	moved := document(rule("secrets", kmsOf(plugin), local))
	write(t, s.file, moved)
	await(t, "a refused reload", func() bool { return s.reloads(t, "failure") > 0 })
	if got := s.open(ctx, secretKey, before); got != "x" {
		t.Errorf("while the plug-in is down: %s", got)
	}
	if stored := s.seal(t, secretKey, "x"); !bytes.HasPrefix(stored, []byte("k8s:enc:secretbox:")) {
		t.Errorf("while the plug-in is down, %.30q is stored", stored)
	}
	plugin.Start(t)
	write(t, s.file, moved+"# again\n")
	await(t, "a reload", func() bool { return s.reloads(t, "success") == 1 })
	sealed := s.seal(t, secretKey, "y")
	if !bytes.HasPrefix(sealed, []byte("k8s:enc:kms:v2:test:")) {
		t.Errorf("after the reload, %.30q is stored", sealed)
	}
	for stored, want := range map[string]string{string(before): "x (stale)", string(sealed): "y"} {
		if got := s.open(ctx, secretKey, []byte(stored)); got != want {
			t.Errorf("after the reload: %q, want %q", got, want)
		}
	}
	if err := s.Checks()[0].Run(request(t)); err != nil {
		t.Error(err)
	}
	write(t, s.file, document(rule("secrets", local, kmsOf(plugin))))
	await(t, "a second reload", func() bool { return s.reloads(t, "success") == 2 })
	if got := s.open(ctx, secretKey, sealed); got != "y (stale)" {
		t.Errorf("on the way back: %q", got)
	}
	write(t, s.file, document(rule("secrets", local)))
	await(t, "a third reload", func() bool { return s.reloads(t, "success") == 3 })
	if got := s.open(ctx, secretKey, sealed); got != "error: no matching prefix found" {
		t.Errorf("without the provider: %q", got)
	}
	if err := s.Checks()[0].Run(request(t)); err != nil {
		t.Errorf("health without a provider: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// FuzzOpen: no change of a stored value is read, panics, or shows the text; except by aescbc, which does not
// authenticate.
func FuzzOpen(f *testing.F) {
	plugin := kmstest.New(f, "a").Start(f)
	var servers []*started
	const text = "a very secret text"
	for _, provider := range []string{keyed("aesgcm", "k", 32, 1), keyed("secretbox", "k", 32, 1), kmsOf(plugin),
		keyed("aescbc", "k", 32, 1)} {
		servers = append(servers, start(f, document(rule("secrets", provider))))
	}
	var stored [][]byte
	for i, s := range servers {
		stored = append(stored, s.seal(f, secretKey, text))
		f.Add(uint8(i), uint16(30), uint8(1), uint16(0), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, flip uint8, cut uint16, raw []byte) {
		i := int(which) % len(servers)
		s, changed := servers[i], bytes.Clone(stored[i])
		if flip == 0 && cut == 0 && raw == nil {
			return
		}
		if flip != 0 {
			changed[int(at)%len(changed)] ^= flip
		}
		changed = append(changed[:len(changed)-int(cut)%len(changed)], raw...)
		if bytes.Equal(changed, stored[i]) {
			return
		}
		value, _, err := s.Transformer(secretKey).Open(t.Context(), []byte(secretKey), changed)
		if err == nil && i != 3 {
			t.Errorf("%q was opened to %q", changed, value)
		}
		if err != nil && (value != nil || strings.Contains(err.Error(), "secret text")) {
			t.Errorf("%v came with %q", err, value)
		}
		s.Transformer(secretKey).AtHand(changed)
	})
}

func request(t testing.TB) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReferenceMetrics: docs/reference has the metrics as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	write(t, file, document(rule("secrets", "identity: {}")))
	e, err := encryption.New(t.Context(), encryption.Config{File: file, Rows: rows.All(), Metrics: r,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	referencetest.MetricsPage(t, "kube-apiserver-encryption", "Metrics of encryption at rest",
		"At `/metrics` of kube-apiserver with `--encryption-provider-config`.", "./pkg/apiserver/storage/encryption",
		r.Metrics())
}
