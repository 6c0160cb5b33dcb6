package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// token is "create token": a token of a service account, on request.
type token struct {
	write.Base
	name, boundKind, boundName, boundUID string
	audiences                            []string
	duration                             time.Duration
}

func newToken(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &token{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "token SERVICE_ACCOUNT_NAME",
		Short:   "Request a service account token",
		Long:    "Request a service account token.",
		Example: "  # Request a token to authenticate to the kube-apiserver as the service account \"myapp\" in the current namespace\n  kubectl create token myapp",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Print.AddFlags(set)
	set.StringArrayVar(&o.audiences, "audience", nil,
		"Audience of the requested token. If unset, defaults to requesting a token for use with the Kubernetes API server. May be repeated to request a token valid for multiple audiences.")
	set.DurationVar(&o.duration, "duration", 0,
		"Requested lifetime of the issued token. If not set or if set to 0, the lifetime will be determined by the server automatically. The server may return a token with a longer or shorter lifetime.")
	set.StringVar(&o.boundKind, "bound-object-kind", "",
		"Kind of an object to bind the token to. Supported kinds are Node, Pod, Secret. If set, --bound-object-name must be provided.")
	set.StringVar(&o.boundName, "bound-object-name", "",
		"Name of an object to bind the token to. The token will expire when the object is deleted. Requires --bound-object-kind.")
	set.StringVar(&o.boundUID, "bound-object-uid", "",
		"UID of an object to bind the token to. Requires --bound-object-kind and --bound-object-name. If unset, the UID of the existing object is used.")
	return cmd
}

// Complete takes the account's name.
func (o *token) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	if o.name = args[0]; o.name == "" {
		return errors.New("service account name is required")
	}
	return o.CompleteWith(f)
}

var boundKinds = []string{"Node", "Pod", "Secret"}

// Validate checks the flags against each other.
func (o *token) Validate() error {
	switch {
	case o.duration < 0:
		return errors.New("--duration must be greater than or equal to 0")
	case o.duration%time.Second != 0:
		return errors.New("--duration cannot be expressed in units less than seconds")
	case o.boundKind == "" && o.boundName != "":
		return errors.New("--bound-object-name can only be set if --bound-object-kind is provided")
	case o.boundKind == "" && o.boundUID != "":
		return errors.New("--bound-object-uid can only be set if --bound-object-kind is provided")
	case o.boundKind == "":
	case !slices.Contains(boundKinds, o.boundKind):
		return fmt.Errorf("supported --bound-object-kind values are %s", strings.Join(boundKinds, ", "))
	case o.boundName == "":
		return errors.New("--bound-object-name is required if --bound-object-kind is provided")
	}
	_, err := o.Printer("")
	return err
}

// Run asks for the token and prints it, or the whole answer with -o.
func (o *token) Run(ctx context.Context) error {
	req := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"},
		Spec:     authenticationv1.TokenRequestSpec{Audiences: o.audiences},
	}
	if o.duration > 0 {
		req.Spec.ExpirationSeconds = new(int64(o.duration / time.Second))
	}
	if o.boundKind != "" {
		req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: o.boundKind, APIVersion: "v1",
			Name: o.boundName, UID: types.UID(o.boundUID)}
	}
	m, err := o.Client.MappingFor(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err != nil {
		return err
	}
	u, err := o.Client.Post(ctx, m, o.Namespace, o.name, "token", req, metav1.CreateOptions{})
	if err != nil {
		// %v: the text is the whole message, not the server's Status
		return fmt.Errorf("failed to create token: %v", err)
	}
	answer := &authenticationv1.TokenRequest{}
	if err := resource.FromUnstructured(u, answer); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	if answer.Status.Token == "" {
		return errors.New("failed to create token: no token in server response")
	}
	if o.Print.Output == "" && o.Print.Template == "" {
		fmt.Fprintln(o.Out, answer.Status.Token)
		return nil
	}
	var p printers.Printer
	if p, err = o.Printer(""); err != nil {
		return err
	}
	return p.Print(answer, o.Out)
}
