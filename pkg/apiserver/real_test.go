package apiserver_test

import (
	"flag"
	"net/http"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/realtest"
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

// startReal starts Kubernetes' own kube-apiserver with auditTokens and the flags, and returns its URL. An unready one
// answers, but never becomes ready.
func startReal(t *testing.T, unready bool, flags ...string) string {
	t.Helper()
	return realtest.Start(t, realtest.Config{Etcd: etcdtest.Start(t).Endpoint, Tokens: auditTokens, Token: "auditadm",
		Unready: unready, Flags: append([]string{"--authorization-mode=Node,RBAC"}, flags...)})
}
