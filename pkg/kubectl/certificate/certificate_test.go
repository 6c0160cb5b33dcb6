package certificate

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const request = `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"r"},"spec":{"signerName":"example.com/x","usages":["client auth"],"request":"eA=="},"status":{"conditions":[{"type":"Foo","status":"True"}]}}`

func with(condition string) string {
	return strings.Replace(strings.Replace(request, `"type":"Foo"`, `"type":"`+condition+`","reason":"Old"`, 1),
		`"name":"r"`, `"name":"`+strings.ToLower(condition)+`"`, 1)
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	const put = "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/"
	for _, c := range []struct {
		args, want string
		requests   []string
	}{
		{"approve r", "certificatesigningrequest.certificates.k8s.io/r approved\n",
			[]string{put + "r/approval", `"type":"Foo"`,
				`"message":"This CSR was approved by kubectl certificate approve."`, `"reason":"KubectlApprove"`}},
		{"deny r", "certificatesigningrequest.certificates.k8s.io/r denied\n",
			[]string{put + "r/approval", `"message":"This CSR was denied by kubectl certificate deny."`,
				`"reason":"KubectlDeny"`}},
		{"approve csr/r -o name", "certificatesigningrequest.certificates.k8s.io/r\n", []string{put}},
		{"approve approved", "certificatesigningrequest.certificates.k8s.io/approved approved\n", nil},
		{"approve approved --force", "certificatesigningrequest.certificates.k8s.io/approved approved\n",
			[]string{put + "approved/approval", "KubectlApprove"}},
		{"deny approved", "error: certificate signing request \"approved\" is already Approved\n", nil},
		{"approve denied --force", "error: certificate signing request \"denied\" is already Denied\n", nil},
		{"approve", "error: one or more CSRs must be specified as <name> or -f <filename>\n", nil},
		{"approve nope", "Error from server (NotFound): certificatesigningrequests.certificates.k8s.io \"nope\" not found\n", nil},
	} {
		s := writetest.NewServer(t, request, with("Approved"), with("Denied"))
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"certificate"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.args, got, c.want)
		}
		log := strings.Join(s.Log(), "\n")
		for _, r := range c.requests {
			if !strings.Contains(log, r) {
				t.Errorf("%s: no %q in\n%s", c.args, r, log)
			}
		}
		if len(c.requests) == 0 && strings.Contains(log, "PUT") {
			t.Errorf("%s: requests\n%s", c.args, log)
		}
	}
}
