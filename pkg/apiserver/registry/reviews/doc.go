// Package reviews answers the questions of authentication.k8s.io and authorization.k8s.io: who is this token, who am I,
// may this user do that, what may I do. Nothing is stored.
package reviews

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// wrongType is the answer to an object that the decoder should not have let through.
func wrongType(want string, got any) error {
	return apierrors.NewBadRequest(fmt.Sprintf("not a %s: %T", want, got))
}
