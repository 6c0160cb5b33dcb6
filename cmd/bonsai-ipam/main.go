// Command bonsai-ipam is a CNI plug-in that gives pods their addresses, and a pod whose sandbox is made again those
// that it had (https://www.cni.dev/docs/spec/). The container runtime runs it, by the network list that bonsai-network
// writes.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"bonsai/pkg/network/ipam"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: ipam.Add, Check: ipam.Check, Del: ipam.Del}, version.All,
		"bonsai-ipam: addresses of pods, kept over new sandboxes")
}
