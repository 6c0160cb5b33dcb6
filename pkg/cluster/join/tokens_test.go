package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// TestCheckToken: what is wrong with the options is known before anything is done.
func TestCheckToken(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("0f", certificateKeySize)
	for _, c := range []struct {
		o     TokenOptions
		want  string
		isKey bool
	}{
		{o: TokenOptions{}},
		{o: TokenOptions{Token: "abcdef.0123456789abcdef", TTL: time.Hour, PrintJoinCommand: true}},
		{o: TokenOptions{Token: "abcdef"}, want: `"abcdef" is no bootstrap token`},
		{o: TokenOptions{TTL: -time.Hour}, want: "--ttl: must not be negative"},
		{o: TokenOptions{UploadCertificates: true, PrintJoinCommand: true}, isKey: true},
		{o: TokenOptions{UploadCertificates: true, CertificateKey: key}, isKey: true},
		{o: TokenOptions{PrintJoinCommand: true, CertificateKey: key}, isKey: true},
		{o: TokenOptions{UploadCertificates: true}, want: "--upload-certs: "},
		{o: TokenOptions{CertificateKey: key}, want: "--certificate-key: needs --upload-certs or --print-join-command"},
		{o: TokenOptions{CertificateKey: "0f", PrintJoinCommand: true}, want: "--certificate-key: must have 64"},
	} {
		n, err := c.o.Check()
		switch {
		case c.want != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%+v: %v, not %q", c.o, err, c.want)
			}
		case err != nil || n.token == bootstraptoken.Token{} || (n.key != nil) != c.isKey:
			t.Errorf("%+v: %+v, %v", c.o, n, err)
		}
	}
}

// administer lets the commands of c ask that server, without credentials.
func administer(t *testing.T, c plan.Config, server string) {
	t.Helper()
	path := c.Layout().Kubeconfig(plan.Administrator)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(path, fmt.Appendf(nil, `{"clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server)); err != nil {
		t.Fatal(err)
	}
}

// TestCreateToken: the authorities are uploaded only once the token is there, since an upload makes the earlier key
// worthless; and without the upload there is no token, which nobody would have seen.
func TestCreateToken(t *testing.T) {
	t.Parallel()
	failed := errors.New("upload failed")
	for _, test := range []struct {
		name   string
		status int // of the answer to the token's Secret
		upload error
		done   string
		want   string // of the error
	}{
		{"good", http.StatusCreated, nil, "POST upload", ""},
		{"exists", http.StatusConflict, nil, "POST", `a token with id "abcdef" already exists`},
		{"no upload", http.StatusCreated, failed, "POST upload DELETE", failed.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var done []string
			answer := map[int]string{
				http.StatusCreated:  `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"kube-system","name":"bootstrap-token-abcdef"}}`,
				http.StatusConflict: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`,
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				done = append(done, r.Method)
				status := test.status
				if r.Method == http.MethodDelete {
					status = http.StatusOK
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprint(w, answer[test.status])
			}))
			t.Cleanup(server.Close)
			c := plan.Default(t.TempDir(), "")
			if err := pki.Make(c, time.Now()); err != nil {
				t.Fatal(err)
			}
			administer(t, c, server.URL)
			n, err := TokenOptions{Token: "abcdef.0123456789abcdef", PrintJoinCommand: true,
				UploadCertificates: true}.Check()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = n.Create(t.Context(), c, func(_ context.Context, key CertificateKey) error {
				done = append(done, "upload")
				if key.Text() != n.key.Text() {
					t.Error("another key was used")
				}
				return test.upload
			}, time.Now(), &out)
			if got := strings.Join(done, " "); got != test.done {
				t.Errorf("it did %q, not %q", got, test.done)
			}
			if test.want != "" && (err == nil || err.Error() != test.want || out.Len() > 0) ||
				test.want == "" && (err != nil || !strings.Contains(out.String(), "--certificate-key "+n.key.Text())) {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
}

// TestPrintTokens: the columns and words are kubeadm's.
func TestPrintTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	old := bootstraptoken.Token{ID: "bbbbbb", Secret: "0123456789abcdef"}.Object("", now.Add(-time.Hour))
	delete(old.Data, bootstraptoken.KeySigning)
	delete(old.Data, bootstraptoken.KeyGroups)
	var out bytes.Buffer
	if err := printTokens(&out,
		[]*corev1.Secret{old, bootstraptoken.Token{ID: "cccccc", Secret: "0123456789abcdef"}.Object("", time.Time{}),
			bootstraptoken.Token{ID: "aaaaaa", Secret: "0123456789abcdef"}.Object("mine", now.Add(90*time.Minute))},
		now); err != nil {
		t.Fatal(err)
	}
	want := `TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION   EXTRA GROUPS
aaaaaa.0123456789abcdef   1h30m0s     2026-11-23T04:30:00Z   authentication,signing   mine          system:bootstrappers:kubeadm:default-node-token
bbbbbb.0123456789abcdef   <invalid>   2026-11-23T02:00:00Z   authentication           <none>        <none>
cccccc.0123456789abcdef   <forever>   <never>                authentication,signing   <none>        system:bootstrappers:kubeadm:default-node-token
`
	if out.String() != want {
		t.Errorf("%s\nnot\n%s", &out, want)
	}
}
