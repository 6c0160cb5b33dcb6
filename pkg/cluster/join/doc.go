// Package join is how nodes on other machines come into a cluster.
//
// A joinable cluster publishes what a machine must know (Publish), gives out bootstrap tokens (CreateToken), and
// approves the serving certificates of kubelets that joined (ApproveServing). A machine that joins finds out whether
// the server is the cluster that its user means (Request.Discover), learns what a node must know (Cluster.Complete),
// and waits until its node is Ready (Wait).
//
// The messages are kubeadm's: the ConfigMap cluster-info, signed with the token, and the hash of the authority's key.
package join
