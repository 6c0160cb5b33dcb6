package encryption

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestMake: a new cluster gets a key that root alone may read, and keeps it. One without encryption gets none.
func TestMake(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	l := c.Layout()
	if err := errors.Join(Make(c, now)); err != nil {
		t.Fatal(err)
	}
	keys, err := Read(l)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", names(keys), err)
	}
	for path, want := range map[string]fs.FileMode{l.Encryption(): 0o600, filepath.Dir(l.Encryption()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := os.MkdirAll(l.At("etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(l); err != nil || again[0] != keys[0] {
		t.Errorf("a second start has another key (%v)", err)
	}
	if err := os.Remove(l.Encryption()); err != nil {
		t.Fatal(err)
	}
	// A snapshot without the names of its keys would seem to need none.
	for _, withKeys := range []bool{false, true} {
		record, err := Record(c, withKeys)
		if err == nil || !strings.Contains(err.Error(), l.Encryption()+" is missing") {
			t.Errorf("a snapshot without the file: %q, %v", record, err)
		}
	}
	if err := Make(c, now); err == nil || !strings.Contains(err.Error(), l.Encryption()+" is missing") {
		t.Errorf("a cluster that has lost its keys: %v", err)
	}
	c.EncryptSecrets = false
	if err := Make(c, now); err != nil || host.StatError(l.Encryption()) == nil {
		t.Errorf("a cluster without encryption: %v", err)
	}
	joined := plantest.Config(t)
	joined.Joined = &plan.Joined{ControlPlane: true}
	if err := Make(joined, now); err == nil {
		t.Error("a machine that has joined made keys of its own")
	}
}

// TestOwnFile: a file of the user's takes the place of the cluster's, and must have the keys that the cluster's had.
func TestOwnFile(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	l := c.Layout()
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(l.Encryption())
	if err != nil {
		t.Fatal(err)
	}
	c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {"encryption-provider-config": own}}
	if componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		t.Error("both files are in force")
	}
	for content, ok := range map[string]bool{"other": false, string(text): true} {
		if err := os.WriteFile(own, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Make(c, now); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), own) {
			t.Errorf("%.20q: %v", content, err)
		}
	}
	if err := os.Remove(l.Encryption()); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, now); err != nil || host.StatError(l.Encryption()) == nil {
		t.Errorf("a file was made beside the user's: %v", err)
	}
	if record, err := Record(c, false); err != nil || record != nil {
		t.Errorf("%s, %v", record, err)
	}
}

// TestChanged: a file that is not ours is refused by what would write it, and no error shows a key.
func TestChanged(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	l := c.Layout()
	if err := Make(c, now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(l.Encryption())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Read(l)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) []byte {
		changed := bytes.ReplaceAll(text, []byte(old), []byte(new))
		if bytes.Equal(changed, text) {
			t.Fatalf("no %q in %s", old, text)
		}
		return changed
	}
	for name, changed := range map[string][]byte{
		"more resources": replace("- secrets", "- secrets\n  - configmaps"),
		"no identity":    replace("- identity: {}", "- aescbc: {keys: []}"),
		"another kind":   replace("EncryptionConfiguration", "Other"),
		"no secret":      replace("secret: "+keys[0].Secret, "secret: ''"),
		"short secret":   replace(keys[0].Secret, "c2VjcmV0"),
		"no YAML":        []byte("{" + keys[0].Secret),
		"nothing":        nil,
		"a bad name":     replace(keys[0].Name, `"a:b"`),
	} {
		if err := os.WriteFile(l.Encryption(), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(l); err == nil || strings.Contains(err.Error(), keys[0].Secret) ||
			!strings.Contains(err.Error(), l.Encryption()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(l.Encryption(), replace("- secrets", "- secrets\n  - configmaps"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Make(c, now); err != nil {
		t.Errorf("a start with a file that the user has changed: %v", err)
	}
	if record, err := Record(c, false); err != nil || !strings.Contains(string(record), keys[0].Name) {
		t.Errorf("%s, %v", record, err)
	}
	if _, err := Record(c, true); !errors.Is(err, ErrChanged) {
		t.Errorf("with the keys: %v", err)
	}
}

// TestElsewhere: a snapshot in another cluster is refused without its keys, by name, and admitted with them.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	here, there := plantest.Config(t), plantest.Config(t)
	if err := errors.Join(Make(here, now), Make(there, now)); err != nil {
		t.Fatal(err)
	}
	keys, err := Read(here.Layout())
	if err != nil {
		t.Fatal(err)
	}
	l := there.Layout()
	give := func(name string, record []byte) {
		t.Helper()
		if err := host.WriteFile(l.SnapshotKeys(name), record); err != nil {
			t.Fatal(err)
		}
	}
	for _, withKeys := range []bool{false, true} {
		record, err := Record(here, withKeys)
		if err != nil {
			t.Fatal(err)
		}
		give(map[bool]string{false: "without", true: "with"}[withKeys], record)
	}
	before, err := Hash(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{Missing(l, "without"), Admit(l, "without")} {
		if err == nil || !strings.Contains(err.Error(), keys[0].Name) ||
			!strings.Contains(err.Error(), "--with-encryption-keys") {
			t.Errorf("without the keys: %v", err)
		}
	}
	if after, err := Hash(l); err != nil || after != before {
		t.Errorf("a refused snapshot changed the keys (%v)", err)
	}
	if err := errors.Join(Missing(l, "with"), Admit(l, "with")); err != nil {
		t.Fatal(err)
	}
	if now, err := Read(l); err != nil || len(now) != 2 || now[1] != keys[0] {
		t.Errorf("with the keys: %v, %v", names(now), err)
	}
	// An older version's snapshot says nothing, and needs nothing.
	if err := os.MkdirAll(l.Snapshot("older"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Missing(l, "older"), Admit(l, "older")); err != nil {
		t.Error(err)
	}
	needed, err := NeededBy(l)
	if err != nil || !slices.Equal(needed[keys[0].Name], []string{"with", "without"}) {
		t.Errorf("%v, %v", needed, err)
	}
	give("bad", []byte("keys: ["))
	if _, err := NeededBy(l); err == nil || !strings.Contains(err.Error(), l.SnapshotKeys("bad")) {
		t.Errorf("an unreadable record: %v", err)
	}
	// Without a file of its own, the cluster takes the snapshot's keys as they are.
	if err := os.RemoveAll(filepath.Dir(l.Encryption())); err != nil {
		t.Fatal(err)
	}
	if err := Admit(l, "with"); err != nil {
		t.Fatal(err)
	}
	if now, err := Read(l); err != nil || !slices.Equal(now, keys) {
		t.Errorf("%v, %v", names(now), err)
	}
}

// TestStored: what values and metrics say.
func TestStored(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Holder{
		"k8s:enc:aesgcm:v1:key1:\x00:x": {"aesgcm", "key1"}, "k8s:enc:kms:v2:service:x": {"kms", "service"},
		"k8s\x00plain": {}, "": {}, "k8s:enc:aesgcm:v1:key1": {},
	} {
		if got := HolderOf([]byte(value)); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	hash := strings.Repeat("0a", 32)
	const name = "apiserver_encryption_config_controller_last_config_info"
	for metrics, want := range map[string]string{
		"": "",
		"# HELP " + name + " hash=\n" + name + `{apiserver_id_hash="sha256:` + strings.Repeat("ff", 32) + `",hash="sha256:` +
			hash + `"} 1` + "\nother 2\n": hash,
		name + `{hash="` + hash + `",apiserver_id_hash="x"} 1` + "\n":        hash,
		name + `{apiserver_id_hash="sha256:` + hash + `",hash="x"} 1` + "\n": "",
	} {
		if got := Loaded([]byte(metrics)); got != want {
			t.Errorf("%s: %q", metrics, got)
		}
	}
}
