package main

import (
	"net/http"
	"slices"
	"strings"

	"bonsai/cmd/internal/guard"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/request"
)

// controlPlaneUser may send spans by the API, besides being allowed to create them. Control planes have it. Nodes send
// as themselves.
const controlPlaneUser = "bonsai:traces"

// sender returns the node that sends a request, "" for a control plane. Others send none: what an administrator may do
// by RBAC is not what a span says.
func sender(r *http.Request) (node string, ok bool) {
	user, ok := guard.UserOf(r)
	if !ok || user.Username == controlPlaneUser {
		return "", ok
	}
	node, ok = strings.CutPrefix(user.Username, request.NodeUserPrefix)
	return node, ok && node != "" && slices.Contains(user.Groups, request.GroupNodes)
}

// caller returns for whose share of the turns a request counts, as the API server counts.
func caller(r *http.Request) string {
	user, _ := guard.UserOf(r) // the guard lets no request through without one
	return inflight.CallerOf(&request.User{Name: user.Username})
}
