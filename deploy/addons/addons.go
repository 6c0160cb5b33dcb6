// Package addons carries the manifests of what every cluster gets besides the components: cluster DNS, the default
// StorageClass and what else can be switched on, and the rights of kube-proxy, of the pod network's agents and of the
// API server on kubelets.
package addons

import "embed"

// Files holds one YAML file per add-on. "$NAME" stands for what the cluster fills in.
//
//go:embed *.yaml
var Files embed.FS
