package apiserver_test

import (
	"bytes"
	"cmp"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

var askReal = flag.Bool("ask-real", false,
	"hold recorded answers to the real kube-apiserver of $REFERENCE_KUBE_APISERVER rather than to ours")

// recordedServer starts a server for recorded requests, and returns who asks it as a user: ours as configure has it, or
// with -ask-real Kubernetes' own with the flags. What a test then reports has changed in Kubernetes since it was
// recorded.
func recordedServer(t *testing.T, configure func(*assemble.Config), flags ...string) func(user string) asker {
	t.Helper()
	if !*askReal {
		url := start(t, configure)
		return func(user string) asker { return asker{plain(user), url} }
	}
	url := startReal(t, false, append([]string{"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged", "--endpoint-reconciler-type=none"}, flags...)...)
	tokens := map[string]string{"admin": "auditadm", "alice": "auditali"} // of auditTokens
	return func(user string) asker {
		return asker{&http.Client{Transport: bearer{tokens[user], plain(user).Transport}}, url}
	}
}

// startReal starts Kubernetes' own kube-apiserver with the flags beside those that it needs, and auditTokens, and
// returns its URL. An unready one answers, but never becomes ready.
func startReal(t *testing.T, unready bool, flags ...string) string {
	t.Helper()
	binary := os.Getenv("REFERENCE_KUBE_APISERVER")
	if binary == "" {
		t.Fatal("REFERENCE_KUBE_APISERVER names no kube-apiserver to ask")
	}
	own := t.TempDir()
	for name, text := range map[string]string{"sa.key": accountKey(t), "tokens": auditTokens} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err = cmp.Or(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--etcd-servers=" + etcdtest.Start(t).Endpoint, "--bind-address=127.0.0.1",
		"--secure-port=" + port,
		"--cert-dir=" + own, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(own, "sa.key"),
		"--service-account-signing-key-file=" + filepath.Join(own, "sa.key"),
		"--token-auth-file=" + filepath.Join(own, "tokens"), "--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=10.96.0.0/16"}, flags...)
	var log bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the kill
		if t.Failed() {
			t.Logf("the real server's last words:\n%s", log.Bytes()[max(0, log.Len()-4000):])
		}
	})
	url := "https://127.0.0.1:" + port
	deadline := time.After(3 * time.Minute)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-tick.C:
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer auditadm")
			resp, err := plain("").Do(r)
			if err != nil {
				continue
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK || unready {
				return url
			}
		case <-deadline:
			t.Fatal("the real server is not ready")
		}
	}
}
