// Package kustomization builds what directories of kustomization files stand for: the objects of -k and of "kubectl
// kustomize".
//
// Remote bases are fetched by the git on the PATH, as kustomize does. No plug-in and no Helm chart is run unless the
// options say so.
package kustomization

import (
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Version is that of the kustomize whose library is linked.
const Version = "v5.8.1"

// Build builds the kustomization at dir, a directory or the address of a git repository. Warnings of deprecated fields
// go to the process' error stream.
func Build(dir string, options *krusty.Options) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
}

// YAML is what the kustomization at dir builds to for -k, as a stream of documents. They come in kustomize's legacy
// order, Namespaces and definitions first and webhooks last, unless the kustomization has sortOptions: what others need
// must be there before them.
func YAML(dir string) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	m, err := Build(dir, options)
	if err != nil {
		return nil, err
	}
	return m.AsYaml()
}
