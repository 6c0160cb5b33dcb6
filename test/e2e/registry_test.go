package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// push pushes an image as clients do: its configuration and layers as blobs, then its manifest by name and tag.
func push(registry, name, tag string, image v1.Image) error {
	send := func(method, at, kind string, body []byte) (*http.Response, error) {
		q, err := http.NewRequest(method, at, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		q.Header.Set("Content-Type", kind)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		if r.StatusCode/100 != 2 {
			err = fmt.Errorf("%s %s: %s", method, at, r.Status)
		}
		return r, err
	}
	blob := func(digest v1.Hash, content []byte) error {
		r, err := send(http.MethodPost, registry+"/v2/"+name+"/blobs/uploads/", "application/octet-stream", nil)
		if err != nil {
			return err
		}
		at, err := r.Location()
		if err != nil {
			return err
		}
		query := at.Query()
		query.Set("digest", digest.String())
		at.RawQuery = query.Encode()
		_, err = send(http.MethodPut, at.String(), "application/octet-stream", content)
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		packed, err := layer.Compressed()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(packed)
		if err != nil {
			return err
		}
		if err := blob(digest, content); err != nil {
			return err
		}
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	digest, err := image.ConfigName()
	if err != nil {
		return err
	}
	if err := blob(digest, config); err != nil {
		return err
	}
	kind, err := image.MediaType()
	if err != nil {
		return err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	_, err = send(http.MethodPut, registry+"/v2/"+name+"/manifests/"+url.PathEscape(tag), string(kind), manifest)
	return err
}

// TestRegistry: an image that is pushed to localhost:5001 on this machine is pulled by both nodes under that name, also
// after the registry's pod has gone and come again; the cluster tells where its registry is (KEP-1755).
func TestRegistry(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := newNamespace(t, "kubectl", "registry")
	k.run("-n", "kube-system", "rollout", "status", "deployment/registry", bound(80))
	image, err := labelled(t, "registry"), error(nil)
	const pushed = "localhost:5001/team/box:1"
	// until its node port leads there
	if !polled(func() bool { err = push("http://localhost:5001", "team/box", "1", image); return err == nil }) {
		t.Fatal(err)
	}
	run := func(pod, node string) {
		k.run("run", pod, "--image="+pushed, "--image-pull-policy=Always", "--restart=Never", "--overrides",
			`{"spec":{"nodeName":"`+node+`"}}`, "--command", "--", "true")
		k.field(pod, ".status.phase", "Succeeded")
	}
	run("first", "n1")
	k.run("-n", "kube-system", "delete", "pod", "-l", "k8s-app=registry")
	k.run("-n", "kube-system", "rollout", "status", "deployment/registry", bound(80))
	run("second", "n2")
	k.eventually("where it is", contains(`host: "localhost:5001"`), "-n", "kube-public", "get", "configmap",
		"local-registry-hosting", "-o", `jsonpath={.data.localRegistryHosting\.v1}`)
}
