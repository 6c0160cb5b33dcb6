package abac

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"

	"bonsai/pkg/apiserver/request"
)

// maxFile bounds a policy file, in bytes. A line has at most bufio.MaxScanTokenSize, as upstream.
const maxFile = 16 << 20

const (
	group   = "abac.authorization.kubernetes.io"
	beta    = group + "/v1beta1"
	version = group + "/v0" // of lines that name none
)

// Load reads a policy file. unversioned is the number of lines in the old format.
func Load(path string) (a *Authorizer, unversioned int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	return parse(path, f)
}

func parse(path string, from io.Reader) (a *Authorizer, unversioned int, err error) {
	from = io.LimitReader(from, maxFile+1)
	a, read := &Authorizer{}, 0
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if read += len(line) + 1; read > maxFile+1 {
			return nil, 0, fmt.Errorf("error reading policy file %s: it has more than %d bytes", path, maxFile)
		}
		if text := bytes.TrimSpace(line); len(text) == 0 || text[0] == '#' {
			continue
		}
		p, old, err := parseLine(line)
		if err != nil {
			return nil, 0, fmt.Errorf("error reading policy file %s, line %d: %s: %w", path, n, line, err)
		}
		if old {
			unversioned++
		}
		a.policies = append(a.policies, *p)
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("error reading policy file %s: %w", path, err)
	}
	return a, unversioned, nil
}

// parseLine reads one policy; old reports that it is in the format without a version.
func parseLine(line []byte) (p *policy, old bool, err error) {
	var of metav1.TypeMeta
	if err := json.Unmarshal(line, &of); err != nil {
		return nil, false, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	kind := of.Kind
	if kind == "" && of.APIVersion == "" || of.APIVersion == "" {
		of.APIVersion = version
	}
	if kind == "" && of.APIVersion == version {
		kind = "Policy"
	}
	switch {
	case kind == "Policy" && of.APIVersion == beta:
		var doc struct {
			Spec policy `json:"spec"`
		}
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(line, &doc); err != nil {
			return nil, false, err
		}
		return doc.Spec.forAll(), false, nil
	case kind == "Policy" && of.APIVersion == version:
		p, err := parseOld(line)
		return p, true, err
	case kind == "":
		return nil, false, fmt.Errorf("a policy of %s must be of kind Policy", of.APIVersion)
	}
	return nil, false, fmt.Errorf("no kind %q is registered for version %q: it must be of kind Policy of %s", kind,
		of.APIVersion, beta)
}

// errNobody is an old line that names no one. Upstream gives its rights to every authenticated user: a line in which
// only the version is forgotten would open the cluster.
var errNobody = errors.New("a policy without a version must name a user or a group")

// parseOld reads a line without a version. There an empty namespace or resource stands for all, any group of the API is
// meant, and a line without both is also about paths.
func parseOld(line []byte) (*policy, error) {
	var in struct {
		User      string `json:"user"`
		Group     string `json:"group"`
		Readonly  bool   `json:"readonly"`
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(line, &in); err != nil {
		return nil, err
	}
	if in.User == "" && in.Group == "" {
		return nil, errNobody
	}
	p := policy{User: in.User, Group: in.Group, Readonly: in.Readonly, APIGroup: all, Resource: in.Resource,
		Namespace: in.Namespace}
	if in.Namespace == "" && in.Resource == "" {
		p.NonResourcePath = all
	}
	for _, field := range []*string{&p.Namespace, &p.Resource} {
		if *field == "" {
			*field = all
		}
	}
	return p.forAll(), nil
}

// forAll: "*" for the user or the group stands for all who are authenticated, and for no one else.
func (p *policy) forAll() *policy {
	if p.User == all || p.Group == all {
		p.Group = request.GroupAuthenticated
	}
	return p
}
