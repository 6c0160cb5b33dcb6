// Package image builds the images that come with Bonsai, and loads images into the nodes of a cluster, lists and
// removes them.
//
// A recipe is built without a container engine: one layer of files that are there already. Nodes take images from
// archives of docker save, from OCI layouts, and from this machine's Docker or containerd.
package image
