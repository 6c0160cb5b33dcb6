package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// magic begins every protobuf object on the wire.
const magic = "k8s\x00"

// maxAnswer bounds what is read of an answer to Send: its error, or what is thrown away so that the connection can be
// used again.
const maxAnswer = 1 << 20

// Message is an object that can be protobuf.
type Message interface{ Marshal() ([]byte, error) }

// Send posts body, of a kind in the resource's group version, to the resource in a namespace or, if name and sub are
// not empty, to a subresource of the named object, and reads the answer only if it is an error. It does without
// client-go's request builder, codecs and the decoding of an answer that no caller reads: it is for writes that every
// pod causes.
func (r *Resource[T]) Send(ctx context.Context, ns, name, sub, kind string, body Message) error {
	gv := r.gvr.GroupVersion()
	if ns == "" || (name == "") != (sub == "") {
		return fmt.Errorf("posting a %s: namespace %q, name %q and subresource %q name no resource", kind, ns, name,
			sub)
	}
	path := root(gv) + "/" + gv.String() + "/namespaces/" + ns + "/" + r.gvr.Resource
	if name != "" {
		path += "/" + name + "/" + sub
	}
	raw, err := body.Marshal()
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: gv.String(), Kind: kind},
		Raw: raw}).Marshal()
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	return r.client.post(ctx, path, kind, append([]byte(magic), envelope...))
}

func (c *Client) post(ctx context.Context, path, kind string, body []byte) error {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header["Content-Type"] = []string{runtime.ContentTypeProtobuf}
	req.Header["Accept"] = []string{runtime.ContentTypeJSON}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("posting a %s to %s: %w", kind, path, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 2 {
		_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("posting a %s to %s: %s: %w", kind, path, res.Status, err)
	}
	status := metav1.Status{}
	if json.Unmarshal(answer, &status) == nil && status.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("posting a %s to %s: %s", kind, path, res.Status)
}

// SendPatch is Patch without decoding the answer, for the same reason.
func (r *Resource[T]) SendPatch(ctx context.Context, ns, name string, t types.PatchType, patch []byte,
	sub ...string) error {
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return err
	}
	return r.on(c.Patch(t), ns).Name(name).SubResource(sub...).Body(patch).Do(ctx).Error()
}
