package e2e

import (
	"strings"
	"testing"
)

// TestNames: the programs of the local image look names up, short and full, that are there and that are not, and none
// of them crashes.
func TestNames(t *testing.T) {
	k := newNamespace(t, "kubectl", "names")
	k.apply(web)
	k.run("run", "look", "--image=localhost/busybox:1.0", "--", "sleep", "3600")
	k.run("rollout", "status", "deployment/web", bound(80))
	k.run("wait", "pod/look", "--for=condition=Ready", bound(80))
	address := k.run("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	for command, want := range map[string]string{
		"wget -T 5 -qO- http://web":                                         "web-",
		"wget -T 5 -qO- http://web.names":                                   "web-",
		"wget -T 5 -qO- http://web.names.svc":                               "web-",
		"wget -T 5 -qO- http://web.names.svc.cluster.local":                 "web-",
		"wget -T 5 -qO- http://web.names.svc.cluster.local.":                "web-",
		"wget -T 5 -qO- http://nosuch":                                      "bad address",
		"wget -T 5 -qO- http://nosuch.names.svc.cluster.local":              "bad address",
		"wget -T 5 -qO- http://nosuch.invalid":                              "bad address",
		"wget -T 5 -qO- http://[::1]:1":                                     "can't connect",
		"ping -c 1 -W 1 kubernetes.default.svc.cluster.local":               "PING kubernetes.default.svc.cluster.local",
		"ping -c 1 -W 1 localhost":                                          "1 packets received",
		"ping -6 -c 1 -W 1 web":                                             "bad address",
		"ping -c 1 -W 1 nosuch":                                             "bad address",
		"nslookup web.names.svc.cluster.local":                              address,
		"nslookup -type=aaaa web.names.svc.cluster.local":                   "ended with 0",
		"nslookup nosuch.names.svc.cluster.local":                           "NXDOMAIN",
		"nslookup nosuch.invalid":                                           "can't find",
		"echo GET /index.html HTTP/1.0 | nc -w 2 web 80":                    "web-",
		"nc -w 2 nosuch 80":                                                 "bad address",
		"echo | timeout 2 telnet web.names.svc.cluster.local 80":            "Connected to web.names.svc.cluster.local",
		"telnet nosuch 80":                                                  "bad address",
		"timeout 2 traceroute -n -m 1 -q 1 -w 1 kubernetes.default":         "traceroute to kubernetes.default",
		"traceroute nosuch":                                                 "bad address",
		"hostname -i":                                                       ".",
		"id nobody && ls -l /etc":                                           "nobody",
		"wget -T 5 -qO- http://web.names.svc.cluster.local./nosuch || true": "404",
	} {
		out := k.run("exec", "look", "--", "sh", "-c", "("+command+") 2>&1; echo ended with $?")
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) || strings.Contains(out, "ended with 139") {
			t.Errorf("%s\nprinted no %q:\n%s", command, want, out)
		}
	}
}
