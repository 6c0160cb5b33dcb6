package config

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// FuzzSetProperty: a property and a value from the command line give an error, or a kubeconfig that reads back with
// that value.
func FuzzSetProperty(f *testing.F) {
	for _, p := range []string{"current-context", "clusters.c.server", "clusters.a.b.c.server", "users.u.token",
		"users.u.client-key-data", "contexts.x.namespace", "contexts.x", "users", "", ".", "clusters..server",
		"preferences.colors", "clusters.c.insecure-skip-tls-verify", "nothing.x", "users.u.exec.command"} {
		f.Add(p, "true")
		f.Add(p, "%%%")
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		if strings.ContainsFunc(path+value, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
			return // no YAML
		}
		p, err := parseProperty(path)
		if err != nil {
			return
		}
		k := clientcmdapi.NewConfig()
		if p.set(k, value, false) != nil {
			return
		}
		data, err := clientcmd.Write(*k)
		if err != nil {
			t.Fatalf("%q=%q cannot be written: %v", path, value, err)
		}
		again, err := clientcmd.Load(data)
		if err != nil {
			t.Fatalf("%q=%q cannot be read back: %v", path, value, err)
		}
		want, ok := p.place(k, false).(*string)
		if got, there := p.place(again, false).(*string); ok && (!there || *got != *want) {
			t.Fatalf("%q=%q reads back otherwise: %s", path, value, data)
		}
	})
}
