package config

import (
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func sample() *clientcmdapi.Config {
	k := clientcmdapi.NewConfig()
	k.CurrentContext = "x"
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", Namespace: "n"}
	k.Clusters["a.b"] = &clientcmdapi.Cluster{Server: "https://old"}
	return k
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, value string
		raw         bool
		got         func(*clientcmdapi.Config) bool
	}{
		{"current-context", "y", false, func(k *clientcmdapi.Config) bool { return k.CurrentContext == "y" }},
		{"contexts.x.namespace", "m", false, func(k *clientcmdapi.Config) bool {
			return k.Contexts["x"].Namespace == "m" && k.Contexts["x"].Cluster == "c"
		}},
		{"clusters.a.b.server", "https://new", false, func(k *clientcmdapi.Config) bool {
			return k.Clusters["a.b"].Server == "https://new"
		}},
		{"clusters.new.insecure-skip-tls-verify", "true", false, func(k *clientcmdapi.Config) bool {
			return k.Clusters["new"].InsecureSkipTLSVerify
		}},
		{"users.u.client-key-data", "S0VZ", false, func(k *clientcmdapi.Config) bool {
			return string(k.AuthInfos["u"].ClientKeyData) == "KEY"
		}},
		{"users.u.client-key-data", "KEY", true, func(k *clientcmdapi.Config) bool {
			return string(k.AuthInfos["u"].ClientKeyData) == "KEY"
		}},
	} {
		k := sample()
		p, err := parseProperty(c.path)
		if err == nil {
			err = p.set(k, c.value, c.raw)
		}
		if err != nil || !c.got(k) {
			t.Errorf("set %s %s: %v", c.path, c.value, err)
		}
	}
	for path, value := range map[string]string{
		"": "x", "foo": "x", "clusters": "x", "clusters.a": "x", "users.u.exec.command": "x",
		"clusters.c.insecure-skip-tls-verify": "maybe", "users.u.client-key-data": "?",
	} {
		p, err := parseProperty(path)
		if err == nil {
			err = p.set(sample(), value, false)
		}
		if err == nil {
			t.Errorf("set %q %q was accepted", path, value)
		}
	}
}

func TestUnset(t *testing.T) {
	t.Parallel()
	for path, gone := range map[string]func(*clientcmdapi.Config) bool{
		"current-context":      func(k *clientcmdapi.Config) bool { return k.CurrentContext == "" },
		"contexts.x.namespace": func(k *clientcmdapi.Config) bool { return k.Contexts["x"].Namespace == "" },
		"contexts.x":           func(k *clientcmdapi.Config) bool { return len(k.Contexts) == 0 },
		"clusters.a.b":         func(k *clientcmdapi.Config) bool { return len(k.Clusters) == 0 },
		"contexts": func(k *clientcmdapi.Config) bool {
			return len(k.Contexts) == 0 && len(k.Clusters) == 1
		},
	} {
		k := sample()
		p, err := parseProperty(path)
		if err == nil {
			err = p.unset(k)
		}
		if err != nil || !gone(k) {
			t.Errorf("unset %s: %v", path, err)
		}
	}
	if p, _ := parseProperty("contexts.nope.namespace"); p.unset(sample()) == nil {
		t.Error("a field of an entry that is not there was unset")
	}
}
