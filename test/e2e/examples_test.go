package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// untilEnded is how long an example that does not end by itself runs until it is interrupted.
const untilEnded = 3 * time.Second

// walkthrough are the examples of all commands in an order in which each has what it needs. Lines that begin with “+ ”
// are no examples: they prepare what the next ones name. “far: ” is the other machine, “ended: ” what the user ends,
// “terminal: ” what wants one. What stands after “ => ” must be in what the example prints or writes into a file.
const walkthrough = `
bonsai version => containerd
bonsai config print-default > cluster.yaml => kind: Cluster
bonsai image build bin/images
bonsai image build bin/images metrics-server
bonsai list
bonsai check => 0 missing
bonsai check --data-dir /srv/bonsai => /srv
bonsai check --nodes 3 --ip-family dual => 0 missing

bonsai up
bonsai status => kube-apiserver
bonsai defragment
bonsai logs
ended: bonsai logs -f kube-apiserver
bonsai logs kubelet --node n1 --tail 100 --since 10m
bonsai exec n1 -- nft list ruleset => table
terminal: bonsai exec -it n1 -- bash
bonsai export logs report
(umask 077; bonsai kubeconfig > kubeconfig) => client-key-data
+ stat --format=%a kubeconfig => 600
bonsai kubeconfig export
bonsai image load app:1
bonsai image list => localhost/pause:1.0
bonsai image rm app:1
docker save app:1 | bonsai image load -
bonsai image load app.tar other.tar.gz
ended: bonsai dns
ended: bonsai dns --listen 127.0.0.1:5300
ended: bonsai console
bonsai tour --list => The life of a pod
bonsai tour => THE LIFE OF A POD
bonsai tour pod service => HOW A SERVICE FINDS ITS PODS
bonsai node add
bonsai node add --labels disktype=ssd
bonsai node remove n3
bonsai snapshot save clean
bonsai snapshot list => clean
bonsai snapshot restore clean
bonsai snapshot rm clean
bonsai encryption status => writes and reads
bonsai encryption rotate
bonsai pause
bonsai resume
bonsai stop
bonsai start
bonsai down

+ bonsai up --encrypt-secrets=false
bonsai encryption enable => All Secrets are encrypted by
+ bonsai down
bonsai up --port 8080:30080
+ bonsai down
bonsai up --ip-family dual
+ bonsai down
bonsai up --addons metrics-server
+ bonsai down

bonsai up --advertise-address 192.0.2.1
bonsai token create --print-join-command => bonsai join 192.0.2.1:6443 --token 
bonsai token create --ttl 1h --description desk
+ bonsai token create abcdef.0123456789abcdef
bonsai token list => abcdef
far: bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866
+ far: bonsai down
far: bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification --node-name desk
+ far: bonsai down
bonsai token create --upload-certs --print-join-command => --certificate-key
far: bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866 --control-plane --certificate-key f8902e114ef118304e561c3ecd4d0b543adc226b7a07f675f56564185ffe0c07
+ far: bonsai down
bonsai token delete abcdef

bonsai up --name dev --nodes 3
bonsai down --name dev
bonsai config print-default > dev.yaml; bonsai up --name dev --config dev.yaml
ended: bonsai console --context bonsai-dev --port 8001
bonsai down --all
bonsai up --name ha --control-planes 3
+ bonsai down --all

export KUBECONFIG=$(bonsai testenv start)
bonsai testenv start --name other
(umask 077; bonsai testenv kubeconfig > config) => server: https://127.0.0.1:
+ stat --format=%a config => 600
bonsai testenv snapshot prepared
bonsai testenv reset
bonsai testenv reset prepared
KUBEBUILDER_ASSETS=$(bonsai testenv assets) go test ./...
bonsai testenv stop
+ bonsai testenv stop --name other
`

// The parts of the examples that only a cluster knows: the hash of its authority, and the key of what was uploaded.
var (
	caHash         = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	certificateKey = regexp.MustCompile(`--certificate-key [0-9a-f]{64}`)
)

// TestExamples runs the examples of every command's --help as they are written, through a shell, on a machine that has
// the files and images that they name; each must succeed, and none may be left out.
func TestExamples(t *testing.T) {
	isLong(t)
	dir := t.TempDir()
	near, far := newMachine(t, "near", dir), newMachine(t, "far", dir)
	near.host("ip", "link", "add", "e2e-near", "type", "veth", "peer", "name", "e2e-far")
	near.wire("e2e-near", "192.0.2.1")
	far.wire("e2e-far", "192.0.2.2")
	work := near.showroom()
	if err := os.MkdirAll(far.home, 0o700); err != nil {
		t.Fatal(err)
	}
	shell := func(m machine, line string) string {
		t.Helper()
		out, err := m.command(4*time.Minute, "/usr/bin/nsenter", "--net=/run/netns/"+m.netns, "env", "-C", work,
			"BONSAI_HOME="+m.home, "XDG_RUNTIME_DIR="+m.home,
			"PATH="+filepath.Join(work, "programs")+":"+m.bin+":"+os.Getenv("PATH"), "sh", "-c", line)
		if err != nil {
			t.Fatalf("%s\n%v", line, err)
		}
		return out
	}
	t.Cleanup(func() {
		for _, m := range []machine{near, far} {
			shell(m, "bonsai down --all; bonsai testenv stop; bonsai testenv stop --name other")
		}
	})
	left := near.examples()
	if len(left) < 50 {
		t.Fatalf("only %d examples were found: %v", len(left), left)
	}
	for line := range strings.Lines(walkthrough) {
		line = strings.TrimSpace(line)
		line, prepares := strings.CutPrefix(line, "+ ")
		m := near
		line, isFar := strings.CutPrefix(line, "far: ")
		if isFar {
			m = far
		}
		line, ended := strings.CutPrefix(line, "ended: ")
		line, terminal := strings.CutPrefix(line, "terminal: ")
		line, want, _ := strings.Cut(line, " => ")
		if line == "" {
			continue
		}
		if !prepares && !left[line] {
			t.Errorf("%q is no example of a command", line)
		}
		delete(left, line)
		_, file, _ := strings.Cut(line, " > ")
		began := time.Now()
		switch {
		case ended: // in the foreground, timeout sends one signal; a second one would end a program at once
			line = "timeout --foreground --preserve-status --signal=INT " + untilEnded.String() + " " + line
		case terminal:
			line = "echo exit | script --quiet --return --command '" + line + "' /dev/null"
		case certificateKey.MatchString(line):
			join := shell(near, "bonsai token create --upload-certs --print-join-command")
			line = caHash.ReplaceAllString(line, caHash.FindString(join))
			line = certificateKey.ReplaceAllString(line, certificateKey.FindString(join))
		case caHash.MatchString(line):
			line = caHash.ReplaceAllString(line,
				caHash.FindString(shell(near, "bonsai token create --print-join-command")))
		}
		out := shell(m, line)
		if file = strings.TrimSuffix(file, ")"); file != "" && !strings.ContainsAny(file, " ;") {
			out += shell(m, "cat "+file)
		}
		if !strings.Contains(out, want) || strings.Contains(out, "\nUsage:\n") {
			t.Errorf("%s\nprinted no %q, or its help:\n%s", line, want, out)
		}
		t.Logf("%5.2f s  %s", time.Since(began).Seconds(), line)
	}
	if len(left) > 0 {
		t.Errorf("examples that were not run:\n%s", strings.Join(slices.Sorted(maps.Keys(left)), "\n"))
	}
}

// examples are the lines of the examples of all commands.
func (m machine) examples() map[string]bool {
	m.t.Helper()
	all := map[string]bool{}
	for todo := [][]string{nil}; len(todo) > 0; todo = todo[1:] {
		section := ""
		for line := range strings.Lines(m.run("bonsai", append(slices.Clone(todo[0]), "--help")...)) {
			line = strings.TrimRight(line, "\n")
			fields := strings.Fields(line)
			switch {
			case strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " "):
				section = line
			case len(fields) == 0:
			case section == "Examples:":
				all[strings.TrimSpace(line)] = true
			case section == "Available Commands:" && fields[0] != "completion" && fields[0] != "help":
				todo = append(todo, append(slices.Clone(todo[0]), fields[0]))
			}
		}
	}
	return all
}

// showroom makes a directory with what the examples name: archives, a Go module, and a Docker that knows the image
// app:1.
func (m machine) showroom() string {
	m.t.Helper()
	work := filepath.Join(m.home, "work")
	for path, text := range map[string]string{
		"programs/docker": "#!/bin/sh\n[ \"$1 $2 $3\" = 'save app:1 ' ] || [ \"$1 $2\" = 'save app:1' ] || exit 1\nexec cat " + work + "/app.tar\n",
		"go.mod":          "module example\n",
		"app_test.go": `package example

import (
	"os"
	"testing"
)

func TestAssets(t *testing.T) {
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(os.Getenv("KUBEBUILDER_ASSETS") + "/" + program); err != nil {
			t.Error(err)
		}
	}
}
`,
	} {
		path = filepath.Join(work, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	for archive, name := range map[string]string{"app.tar": "app:1", "other.tar": "other:1"} {
		writeArchive(m.t, filepath.Join(work, archive), name, archive)
	}
	m.host("gzip", filepath.Join(work, "other.tar"))
	if _, err := exec.LookPath("go"); err != nil {
		m.t.Skip("SKIPPED: one example is a test in Go:", err)
	}
	return work
}
