package describe

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"bonsai/api/certificates"
	"bonsai/pkg/kubectl/printers"
)

func signingRequest(d *describer, r *certificatesv1.CertificateSigningRequest) error {
	asked, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil {
		return fmt.Errorf("Error parsing CSR: %w", err)
	}
	d.line(0, "Name:\t%s\nLabels:\t%s\nAnnotations:\t%s\n", r.Name, printers.FormatLabels(r.Labels),
		printers.FormatLabels(r.Annotations))
	d.line(0, "CreationTimestamp:\t%s\n", r.CreationTimestamp.Time.Format(time.RFC1123Z))
	d.line(0, "Requesting User:\t%s\n", r.Spec.Username)
	if r.Spec.SignerName != "" {
		d.line(0, "Signer:\t%s\n", r.Spec.SignerName)
	}
	if s := r.Spec.ExpirationSeconds; s != nil {
		d.line(0, "Requested Duration:\t%s\n", duration.HumanDuration(time.Duration(*s)*time.Second))
	}
	d.line(0, "Status:\t%s\n", certificates.StateText(&r.Status))
	d.line(0, "Subject:\n")
	writeSubject(d.writer, &asked.Subject)
	if len(asked.DNSNames)+len(asked.EmailAddresses)+len(asked.URIs)+len(asked.IPAddresses) > 0 {
		d.line(0, "Subject Alternative Names:\n")
		writeValues(d.writer, "DNS Names", asked.DNSNames)
		writeValues(d.writer, "Email Addresses", asked.EmailAddresses)
		var uris, ips []string
		for _, u := range asked.URIs {
			uris = append(uris, u.String())
		}
		for _, ip := range asked.IPAddresses {
			ips = append(ips, ip.String())
		}
		writeValues(d.writer, "URIs", uris)
		writeValues(d.writer, "IP Addresses", ips)
	}
	return nil
}

// writeSubject writes what there is of a name.
func writeSubject(w *writer, n *pkix.Name) {
	w.line(0, "\tCommon Name:\t%s\n\tSerial Number:\t%s\n", n.CommonName, n.SerialNumber)
	for _, p := range []struct {
		name  string
		parts []string
	}{
		{"Organization", n.Organization}, {"Organizational Unit", n.OrganizationalUnit}, {"Country", n.Country},
		{"Locality", n.Locality},
		{"Province", n.Province}, {"StreetAddress", n.StreetAddress}, {"PostalCode", n.PostalCode},
	} {
		writeValues(w, p.name, p.parts)
	}
}

// writeValues writes a name in the second column with its values one below the other, nothing if there are none.
func writeValues(w *writer, name string, all []string) {
	if len(all) > 0 {
		w.line(0, "\t%s:\t%s\n", name, strings.Join(all, "\n\t\t"))
	}
}
