// Package certificate is "kubectl certificate": it approves and denies CertificateSigningRequests.
package certificate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// conflicts is how often an answer is tried again when another write came between.
const conflicts = 10

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "certificate SUBCOMMAND", Short: "Modify certificate resources",
		Long: "Modify certificate resources.", RunE: group}
	cmd.AddCommand(newAnswer(f, streams, approval()), newAnswer(f, streams, denial()))
	return cmd
}

// group shows the help where no subcommand is named; that is no failure here, other than with the other groups.
func group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Group(cmd, args)
	}
	return cmd.Help()
}

// answer is what one of the two subcommands says.
type answer struct {
	verb, past, short, long string
	condition               certificatesv1.RequestConditionType
	opposite                certificatesv1.RequestConditionType
	reason                  string
}

func approval() answer {
	return answer{
		verb: "approve", past: "approved", short: "Approve a certificate signing request",
		long:      "Approve a certificate signing request.\n\n kubectl certificate approve allows a cluster admin to approve a certificate signing request (CSR). This action tells a certificate signing controller to issue a certificate to the requester with the attributes requested in the CSR.\n\n SECURITY NOTICE: Depending on the requested attributes, the issued certificate can potentially grant a requester access to cluster resources or to authenticate as a requested identity. Before approving a CSR, ensure you understand what the signed certificate can do.",
		condition: certificatesv1.CertificateApproved, opposite: certificatesv1.CertificateDenied,
		reason: "KubectlApprove",
	}
}

func denial() answer {
	return answer{
		verb: "deny", past: "denied", short: "Deny a certificate signing request",
		long:      "Deny a certificate signing request.\n\n kubectl certificate deny allows a cluster admin to deny a certificate signing request (CSR). This action tells a certificate signing controller to not to issue a certificate to the requester.",
		condition: certificatesv1.CertificateDenied, opposite: certificatesv1.CertificateApproved,
		reason: "KubectlDeny",
	}
}

// Options is one run of one of the subcommands.
type Options struct {
	write.Base
	answer answer
	files  resource.Files
	args   []string
	force  bool
}

func newAnswer(f *cli.Factory, streams cli.IOStreams, a answer) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}, answer: a}
	cmd := &cobra.Command{
		Use: a.verb + " (-f FILENAME | NAME)", Short: a.short, Long: a.long,
		Example: fmt.Sprintf("  # %s%s CSR 'csr-sqgzp'\n  kubectl certificate %s csr-sqgzp", string(a.verb[0]-'a'+'A'),
			a.verb[1:], a.verb),
		RunE: cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Print.AddFlags(set)
	o.files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to update")
	set.BoolVar(&o.force, "force", false, "Update the CSR even if it is already "+a.past+".")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate checks that something is named.
func (o *Options) Validate() error {
	if len(o.args) == 0 && o.files.Empty() {
		return errors.New("one or more CSRs must be specified as <name> or -f <filename>")
	}
	_, err := o.Printer(o.answer.past)
	return err
}

// Run answers all that it finds.
func (o *Options) Run(ctx context.Context) error {
	q := resource.Request{Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit, Latest: true}
	for _, a := range o.args {
		if a == "" {
			return resource.ErrNoName
		}
		q.Args = append(q.Args, name(a))
	}
	p, err := o.Printer(o.answer.past)
	if err != nil {
		return err
	}
	infos, err := o.Client.Resolve(ctx, q)
	return resource.Each(infos, err, func(i *resource.Info) error {
		obj, err := o.give(ctx, i)
		if err != nil {
			return err
		}
		return p.Print(obj, o.Out)
	})
}

// name makes a bare name one of a request.
func name(arg string) string {
	if strings.Contains(arg, "/") {
		return arg
	}
	return "certificatesigningrequests/" + arg
}

// give adds the answer to one request, unless it has it.
func (o *Options) give(ctx context.Context, i *resource.Info) (runtime.Object, error) {
	want := schema.GroupKind{Group: certificatesv1.GroupName, Kind: "CertificateSigningRequest"}
	if got := i.Mapping.GroupVersionKind.GroupKind(); got != want {
		return nil, fmt.Errorf("can only handle certificates.k8s.io/v1 CertificateSigningRequest objects, got %s",
			i.Mapping.GroupVersionKind)
	}
	for try := 0; ; try++ {
		u, err := o.Client.Get(ctx, i.Mapping, "", i.Name)
		if err != nil {
			return nil, err
		}
		var r certificatesv1.CertificateSigningRequest
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
			return nil, err
		}
		change, err := o.answer.add(&r, o.force, metav1.Now())
		if err != nil || !change {
			return u, err
		}
		r.SetGroupVersionKind(i.Mapping.GroupVersionKind)
		made, err := o.Client.Update(ctx, i.Mapping, "", i.Name, &r, o.UpdateOptions(), "approval")
		if !apierrors.IsConflict(err) || try == conflicts {
			return made, err
		}
	}
}

// add puts the answer among a request's conditions, and reports whether that changes them. An answer that is there
// already is renewed only by force.
func (a answer) add(r *certificatesv1.CertificateSigningRequest, force bool, now metav1.Time) (bool, error) {
	var kept []certificatesv1.CertificateSigningRequestCondition
	for _, c := range r.Status.Conditions {
		switch {
		case c.Type == a.opposite:
			return false, fmt.Errorf("certificate signing request %q is already %s", r.Name, c.Type)
		case c.Type != a.condition:
			kept = append(kept, c)
		case !force:
			return false, nil
		}
	}
	r.Status.Conditions = append(kept, certificatesv1.CertificateSigningRequestCondition{
		Type: a.condition, Status: "True", Reason: a.reason,
		Message:        fmt.Sprintf("This CSR was %s by kubectl certificate %s.", a.past, a.verb),
		LastUpdateTime: metav1.NewTime(now.Truncate(time.Second)),
	})
	return true, nil
}
