package join

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
)

// TokenOptions describe a new bootstrap token.
type TokenOptions struct {
	Token       string        // as abcdef.0123456789abcdef; "": one is made
	TTL         time.Duration // 0: it does not expire
	Description string
	// PrintJoinCommand prints the command that joins with it, and not the token alone.
	PrintJoinCommand bool
	// UploadCertificates lets machines join with control planes (NewToken.Create).
	UploadCertificates bool
	// CertificateKey makes the command that for a control plane, and encrypts what is uploaded; "": for a node alone,
	// or a new key if something is uploaded.
	CertificateKey string
}

// NewToken is a token that is to be created: TokenOptions that have been checked.
type NewToken struct {
	TokenOptions
	token bootstraptoken.Token
	key   CertificateKey // nil: the command is for a node alone
}

// Check returns the token that is to be created, or an error that names the first option that is wrong. It sends no
// request.
func (o TokenOptions) Check() (NewToken, error) {
	n := NewToken{TokenOptions: o}
	var err error
	if o.Token == "" {
		n.token, err = bootstraptoken.New(rand.Reader)
	} else {
		n.token, err = bootstraptoken.Parse(o.Token)
	}
	if err != nil {
		return n, err
	}
	if o.TTL < 0 {
		return n, errors.New("--ttl: must not be negative")
	}
	switch {
	case o.CertificateKey != "" && !o.UploadCertificates && !o.PrintJoinCommand:
		return n, errors.New("--certificate-key: needs --upload-certs or --print-join-command")
	case o.CertificateKey != "":
		n.key, err = ParseCertificateKey(o.CertificateKey)
	case o.UploadCertificates && !o.PrintJoinCommand:
		return n, errors.New("--upload-certs: nobody would have the key: add --print-join-command, or give a --certificate-key")
	case o.UploadCertificates:
		n.key, err = NewCertificateKey()
	}
	return n, err
}

// Create makes a bootstrap token with which machines join the cluster, which runs, and prints it. If authorities are to
// be uploaded, upload does it.
//
// The Secret has the token in the clear, so ListTokens can print it again. The cluster's signer adds its signature a
// moment later (unsignedTries).
func (o NewToken) Create(ctx context.Context, c plan.Config, upload func(context.Context, CertificateKey) error,
	now time.Time, out io.Writer) error {
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	expires := time.Time{}
	if o.TTL > 0 {
		expires = now.Add(o.TTL)
	}
	t := o.token
	s, err := secrets.Create(ctx, t.Object(o.Description, expires))
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("a token with id %q already exists", t.ID)
	case err != nil:
		return fmt.Errorf("create the token: %w", err)
	}
	// The upload comes after all that can be refused: it replaces an earlier one, and so the key that users have.
	if o.UploadCertificates {
		if err := upload(ctx, o.key); err != nil {
			// Nobody has the token, so it must not stay valid, also if the user has given up.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), client.Timeout)
			defer cancel()
			return errors.Join(err, secrets.Delete(ctx, s.Namespace, s.Name, ""))
		}
	}
	if !o.PrintJoinCommand {
		_, err := fmt.Fprintln(out, t)
		return err
	}
	hash, err := caHash(c)
	if err != nil {
		return err
	}
	controlPlane := ""
	if o.key != nil {
		controlPlane = " --control-plane --certificate-key " + o.key.Text()
	}
	_, err = fmt.Fprintf(out, "bonsai join %s --token %s --discovery-token-ca-cert-hash %s%s\n", plan.Endpoint(c), t, hash,
		controlPlane)
	return err
}

// ListTokens prints the bootstrap tokens of the cluster, which runs.
func ListTokens(ctx context.Context, c plan.Config, now time.Time, out io.Writer) error {
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	all, err := secrets.List(ctx, metav1.NamespaceSystem,
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return fmt.Errorf("list the tokens: %w", err)
	}
	return printTokens(out, all, now)
}

// printTokens prints the columns that kubeadm token list prints.
func printTokens(out io.Writer, all []*corev1.Secret, now time.Time) error {
	slices.SortFunc(all, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	for _, s := range all {
		of := func(key string) string { return string(s.Data[key]) }
		left := "<forever>"
		if text := of(bootstraptoken.KeyExpiration); text != "" {
			left = "<invalid>"
			if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(now) {
				left = at.Sub(now).Round(time.Second).String()
			}
		}
		var usages []string
		for usage, key := range map[string]string{"authentication": bootstraptoken.KeyAuthentication,
			"signing": bootstraptoken.KeySigning} {
			if of(key) == "true" {
				usages = append(usages, usage)
			}
		}
		slices.Sort(usages)
		fmt.Fprintf(w, "%s.%s\t%s\t%s\t%s\t%s\t%s\n", of(bootstraptoken.KeyID), of(bootstraptoken.KeySecret), left,
			cmp.Or(of(bootstraptoken.KeyExpiration), "<never>"),
			cmp.Or(strings.Join(usages, ","), "<none>"), cmp.Or(of(bootstraptoken.KeyDescription), "<none>"),
			cmp.Or(of(bootstraptoken.KeyGroups), "<none>"))
	}
	return w.Flush()
}

// DeleteToken deletes a bootstrap token of the cluster, which runs, by the whole token or its ID. Machines that have
// joined stay: they have certificates of their own.
func DeleteToken(ctx context.Context, c plan.Config, token string, out io.Writer) error {
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(token, ".")
	if err := secrets.Delete(ctx, metav1.NamespaceSystem, bootstraptoken.SecretPrefix+id, ""); err != nil {
		return fmt.Errorf("delete the token %q: %w", id, err)
	}
	_, err = fmt.Fprintf(out, "bootstrap token %q deleted\n", id)
	return err
}

// tokens returns the cluster's Secrets.
func tokens(c plan.Config) (*apiclient.Resource[*corev1.Secret], error) {
	api, err := client.Core(c)
	if err != nil {
		return nil, err
	}
	return core.Secrets(api), nil
}
