package apiresources

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
)

// TestObject: -o yaml shows all resources as one list, each with its group and version.
func TestObject(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &options{IOStreams: cli.IOStreams{Out: &out}, output: "yaml"}
	err := o.print([]row{
		{schema.GroupVersion{Version: "v1"},
			metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}}},
		{schema.GroupVersion{Group: "apps", Version: "v1"},
			metav1.APIResource{Name: "deployments", Kind: "Deployment", ShortNames: []string{"deploy"}}},
	})
	const want = `apiVersion: v1
groupVersion: ""
kind: APIResourceList
resources:
- kind: Pod
  name: pods
  namespaced: true
  singularName: ""
  verbs:
  - get
  version: v1
- group: apps
  kind: Deployment
  name: deployments
  namespaced: false
  shortNames:
  - deploy
  singularName: ""
  verbs: null
  version: v1
`
	if err != nil || out.String() != want {
		t.Errorf("got %v\n%s", err, out.String())
	}
}
