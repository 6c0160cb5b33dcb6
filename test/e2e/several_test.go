package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestSeveralClusters: a second cluster that would take what the first one has is refused with the name of the first
// and makes nothing; one that leaves its addresses open runs beside it, and neither its coming nor its going is noticed
// by the first.
func TestSeveralClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	second := env{bin: cluster.bin, data: filepath.Join(dir, "second"), home: dir,
		kubeconfig: filepath.Join(dir, "config")}
	first := func() string {
		status, err := cluster.command(time.Minute, "bonsai", "--data-dir", cluster.data, "status")
		if err != nil {
			t.Error(status, err)
		}
		kubeconfig, err := os.ReadFile(cluster.kubeconfig)
		if err != nil {
			t.Error(err)
		}
		return pids(status) + "\n" + string(kubeconfig)
	}
	before := first()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := second.command(time.Minute, "bonsai", "--data-dir", second.data, "up", "--egress=false", "--api-port",
		server.Port())
	if err == nil || !strings.Contains(out, "the cluster in "+cluster.data) ||
		!strings.Contains(out, "the port 127.0.0.1:"+server.Port()) {
		t.Errorf("the first one's port: %s, %v", out, err)
	}
	if _, err := os.Stat(second.data); !os.IsNotExist(err) {
		t.Errorf("it made its data directory: %v", err)
	}
	if out, err := second.command(time.Minute, "bonsai", "--data-dir", second.data, "down"); err != nil ||
		!strings.Contains(out, "nothing to do") {
		t.Errorf("down: %s, %v", out, err)
	}

	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, published, err := net.SplitHostPort(free.Addr().String())
	if err := errors.Join(err, free.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.command(2*time.Minute, "bonsai", "--data-dir", second.data, "down") })
	if out, err := second.command(3*time.Minute, "bonsai", "--data-dir", second.data, "--name", "second", "up",
		"--nodes", "2", "--egress=false", "--port", published+":30080"); err != nil {
		t.Fatal(out, err)
	}
	out, err = second.command(time.Minute, "bonsai", "list")
	if err != nil || !strings.Contains(out, second.data) || !strings.Contains(out, cluster.data) ||
		strings.Count(out, "running") != 2 {
		t.Errorf("list: %s, %v", out, err)
	}
	if out, err := second.command(time.Minute, "kubectl", "--context", "bonsai-second", "get", "nodes",
		"--no-headers"); err != nil || strings.Count(out, " Ready ") != 2 {
		t.Errorf("the second cluster: %s, %v", out, err)
	}
	for _, args := range []string{
		"create deployment web --image=localhost/busybox:1.0 -- httpd -f -p 8080 -h /etc",
		"create service nodeport web --tcp=8080 --node-port=30080",
	} {
		if out, err := second.command(time.Minute, "kubectl", strings.Fields(args)...); err != nil {
			t.Fatal(out, err)
		}
	}
	client := http.Client{Timeout: here(5 * time.Second)}
	waitFor(t, "a pod of the second cluster answers at the published port", func() bool {
		answer, err := client.Get("http://127.0.0.1:" + published + "/hostname")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return err == nil && strings.HasPrefix(string(body), "web-")
	})
	// By its name alone.
	if out, err := second.command(2*time.Minute, "bonsai", "down", "--name", "second"); err != nil ||
		!strings.Contains(out, "Remove the data directory") {
		t.Errorf("down: %s, %v", out, err)
	}
	if _, err := os.Stat(second.data); !os.IsNotExist(err) {
		t.Errorf("the data directory is left: %v", err)
	}
	if after := first(); after != before {
		t.Errorf("the first cluster before:\n%s\nafter:\n%s", before, after)
	}
}

// TestConfigFile: a file's mistakes are told with line and field before anything is made.
func TestConfigFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(path,
		[]byte("apiVersion: bonsai.io/v1alpha1\nkind: Cluster\nnodes:\n- {}\n- lables: {a: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cluster.command(time.Minute, "bonsai", "--data-dir", filepath.Join(dir, "data"), "up", "--config", path)
	if err == nil || !strings.Contains(out, path+`: line 5: unknown field "lables"`) {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("it made its data directory: %v", err)
	}
}
