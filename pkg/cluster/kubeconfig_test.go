package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestContext: the context comes into the user's kubeconfig beside what is there, and leaves it as it was.
func TestContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "config")
	t.Setenv("KUBECONFIG", path)
	c := testConfig(t)
	if err := c.makePKI(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.exportContext(); err != nil {
		t.Fatal(err)
	}
	if err := c.removeContext(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file with nothing in it is left: %v", err)
	}
	mine := clientcmdapi.NewConfig()
	mine.Clusters["work"] = &clientcmdapi.Cluster{Server: "https://work.example"}
	mine.AuthInfos["work"] = &clientcmdapi.AuthInfo{Token: "t"}
	mine.Contexts["work"] = &clientcmdapi.Context{Cluster: "work", AuthInfo: "work"}
	mine.CurrentContext = "work"
	if err := clientcmd.WriteToFile(*mine, path); err != nil {
		t.Fatal(err)
	}
	if err := c.exportContext(); err != nil {
		t.Fatal(err)
	}
	both, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if both.CurrentContext != "bonsai" || both.Clusters["bonsai"].Server != "https://127.0.0.1:6443" || both.AuthInfos["work"].Token != "t" {
		t.Errorf("after up: %+v", both)
	}
	if err := c.removeContext(); err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Contexts["bonsai"] != nil || after.Contexts["work"] == nil || after.CurrentContext != "" {
		t.Errorf("after down: %+v", after)
	}
}

// TestContextOfAnother: a context that has become another cluster's stays when this one goes.
func TestContextOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	first, second := testConfig(t), testConfig(t)
	for _, c := range []Config{first, second} {
		if err := c.makePKI(time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := c.exportContext(); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.removeContext(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the second cluster's context was touched: %v\n%s", err, after)
	}
	if err := second.removeContext(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the context is left: %v", err)
	}
}

func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := c.makePKI(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.writeKubeconfigs(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin", "controller-manager", "scheduler", "kubelet-n1", "proxy-n2"} {
		config, err := clientcmd.BuildConfigFromFlags("", c.layout().kubeconfig(name))
		if err != nil || len(config.CertData) == 0 || len(config.KeyData) == 0 || len(config.CAData) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(c.layout().kubeconfig(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}
