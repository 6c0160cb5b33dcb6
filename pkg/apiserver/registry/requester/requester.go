// Package requester notes in a CertificateSigningRequest who made it: whoever approves or signs it relies on that.
package requester

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Hook takes part in the writes of certificatesigningrequests.
type Hook struct{}

var _ registry.Hook = Hook{}

// BeforeCreate implements registry.Hook: what the client says of itself in the object does not count.
func (Hook) BeforeCreate(ctx context.Context, obj runtime.Object, _ bool) (func(bool), error) {
	s := &obj.(*certificatesv1.CertificateSigningRequest).Spec
	s.Username, s.UID, s.Groups, s.Extra = "", "", nil, nil
	if u := request.UserFrom(ctx); u != nil {
		s.Username, s.UID, s.Groups = u.Name, u.UID, u.Groups
		for k, v := range u.Extra {
			if s.Extra == nil {
				s.Extra = map[string]certificatesv1.ExtraValue{}
			}
			s.Extra[k] = v
		}
	}
	return func(bool) {}, nil
}

// BeforeUpdate implements registry.Hook: the strategy keeps the spec.
func (Hook) BeforeUpdate(context.Context, runtime.Object, runtime.Object, bool) (func(bool), error) {
	return func(bool) {}, nil
}

// AfterDelete implements registry.Hook.
func (Hook) AfterDelete(context.Context, runtime.Object) {}
