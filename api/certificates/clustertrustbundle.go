package certificates

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

type trustBundle = certificatesv1.ClusterTrustBundle

// maxTrustBundle bounds the text of a bundle, in bytes.
const maxTrustBundle = 1 << 20

func trustBundleRow() resources.Row {
	spec := certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()
	return resources.Row{
		GVK:      certificatesv1.SchemeGroupVersion.WithKind("ClusterTrustBundle"),
		Resource: "clustertrustbundles", Singular: "clustertrustbundle",
		StoragePath:    "clustertrustbundles",
		StorageVersion: certificatesv1beta1.SchemeGroupVersion.Version,
		New:            resources.Make[trustBundle],
		Strategy: resources.Typed[*trustBundle]{
			Validate: validateTrustBundle,
			ValidateUpdate: func(obj, old *trustBundle) field.ErrorList {
				return append(validateTrustBundle(obj),
					apivalidation.ValidateImmutableField(obj.Spec.SignerName, old.Spec.SignerName,
						field.NewPath("spec", "signerName"))...)
			},
			// validateTrustBundle checks the name: what is valid depends on the signer.
			ValidateName: func(string, bool) []string { return nil },
			NeedsVersion: true,
		}.Strategy(),
		Fields: resources.Fields(func(b *trustBundle) fields.Set {
			return fields.Set{"spec.signerName": b.Spec.SignerName}
		}),
		FieldNames: []string{"spec.signerName"},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("SignerName", spec["signerName"]),
		},
		Cells: resources.Cells(func(b *trustBundle, _ time.Time) []any {
			return []any{b.Name, cmp.Or(b.Spec.SignerName, "<none>")}
		}),
	}
}

// SignerPrefix is how the names of a signer's trust bundles begin: "example.com/s" → "example.com:s:".
func SignerPrefix(signer string) string { return strings.ReplaceAll(signer, "/", ":") + ":" }

func validateTrustBundle(b *trustBundle) field.ErrorList {
	path, signer := field.NewPath("metadata"), b.Spec.SignerName
	var errs field.ErrorList
	if b.GenerateName != "" {
		errs = append(errs, validate.Invalid(path.Child("generateName"), b.GenerateName,
			trustBundleName(b.GenerateName, signer, true))...)
	}
	if b.Name != "" { // the registry refuses an object without a name
		errs = append(errs, validate.Invalid(path.Child("name"), b.Name, trustBundleName(b.Name, signer, false))...)
	}
	path = field.NewPath("spec")
	if signer != "" {
		errs = append(errs, validate.SignerName(path.Child("signerName"), signer)...)
	}
	return append(errs, validateAnchors(b.Spec.TrustBundle, path.Child("trustBundle"))...)
}

// trustBundleName checks a name, or the prefix of one that is generated.
func trustBundleName(name, signer string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	rest, ok := strings.CutPrefix(name, SignerPrefix(signer))
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer,
			SignerPrefix(signer))}
	}
	return apivalidation.NameIsDNSSubdomain(rest, prefix)
}

// validateAnchors checks that a text has PEM blocks with certificates of authorities, each once, and no others. Text
// around the blocks is a comment.
func validateAnchors(text string, path *field.Path) field.ErrorList {
	if len(text) > maxTrustBundle {
		return field.ErrorList{field.TooLong(path, "", maxTrustBundle)}
	}
	var errs field.ErrorList
	wrong := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, "<value omitted>", fmt.Sprintf(format, args...)))
	}
	var anchors []string
	places := map[string][]int{}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		i, der := len(anchors), string(block.Bytes)
		anchors = append(anchors, der)
		places[der] = append(places[der], i)
		switch certificate, err := x509.ParseCertificate(block.Bytes); {
		case block.Type != "CERTIFICATE":
			wrong("entry %d has bad block type: %v", i, block.Type)
		case len(block.Headers) > 0:
			wrong("entry %d has PEM block headers", i)
		case err != nil:
			wrong("entry %d does not parse as X.509", i)
		case !certificate.IsCA:
			wrong("entry %d does not have the CA bit set", i)
		}
	}
	switch {
	case len(errs) > 0:
		return errs
	case len(anchors) == 0:
		wrong("at least one trust anchor must be provided")
	}
	for i, der := range anchors {
		if at := places[der]; len(at) > 1 && at[0] == i {
			wrong("duplicate trust anchor (indices %v)", at)
		}
	}
	return errs
}
