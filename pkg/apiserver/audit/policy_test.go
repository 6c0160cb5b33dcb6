package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/request"
)

const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

// A policy is read strictly. The messages of rules that are wrong are those of a real kube-apiserver v1.36.3; fields
// that there are not it only warns of.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	for text, want := range map[string]string{
		head + "nope: 1\nrules: [{level: None}]":          `unknown field "nope"`,
		head + "rules: [{level: None, usrs: [a]}]":        `unknown field "rules[0].usrs"`,
		head + "rules:\n- level: None\n  level: Metadata": `already set in map`,
		head:                     "loaded illegal policy with 0 rules",
		head + "rules: a":        "failed decoding: ",
		"":                       `is of kind "" of ""`,
		"rules: [{level: None}]": `is of kind "" of ""`,
		"{":                      "failed decoding: ",
		strings.Replace(head, "Policy", "Event", 1) +
			"rules: [{level: None}]": `is of kind "Event"`,
		strings.Replace(head, "v1", "v1beta1", 1) +
			"rules: [{level: None}]": `of "audit.k8s.io/v1beta1"`,
		head + "rules: [{level: Loud}, {}]":                                   `[rules[0].level: Unsupported value: "Loud": supported values: "None", "Metadata", "Request", "RequestResponse", rules[1].level: Required value]`,
		head + "omitStages: [Foo]\nrules: [{level: None, omitStages: [Bar]}]": `[omitStages[0]: Invalid value: "Foo": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, rules[0].omitStages[0]: Invalid value: "Bar": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic]`,
		head + `rules: [{level: None, nonResourceURLs: ["/x"], resources: [{group: ""}]}, {level: None, nonResourceURLs: ["/x"], namespaces: [a]}]`: `[rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs, rules[1].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs]`,
		head + `rules: [{level: None, nonResourceURLs: ["x","/a*b","/a/*/b","*","/ok*","/ok/*",""]}]`:                                               `[rules[0].nonResourceURLs[0]: Invalid value: "x": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule, rules[0].nonResourceURLs[2]: Invalid value: "/a/*/b": non-resource URL wildcards '*' must be the final character of the rule, rules[0].nonResourceURLs[6]: Invalid value: "": non-resource URL rules must begin with a '/' character]`,
		head + `rules: [{level: None, resources: [{group: "Bad_Group", resources: ["pods"]},{group: "", resourceNames: [a]},{group: "*"}]}]`:        `[rules[0].resources.group: Invalid value: "Bad_Group": ` + subdomain + `, rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource]`,
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil ||
		err.Error() != "loading audit policy file: loaded illegal policy with 0 rules: from file "+file {
		t.Error(err)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	user := &request.User{Name: "u", Groups: []string{"g"}}
	pod := request.Info{IsResource: true, Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: "ns", Name: "p"}
	sub := func(s string) *request.Info { i := pod; i.Subresource = s; return &i }
	node := &request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Resource: "nodes"}
	path := func(p string) *request.Info { return &request.Info{Path: p, Verb: "get"} }
	for _, c := range []struct {
		rule    string
		matches []*request.Info
		not     []*request.Info
	}{
		{`{}`, []*request.Info{&pod, node, path("/x")}, nil},
		{`users: [u]`, []*request.Info{&pod}, nil},
		{`users: [v]`, nil, []*request.Info{&pod}},
		{`userGroups: [h, g]`, []*request.Info{&pod}, nil},
		{`userGroups: [h]`, nil, []*request.Info{&pod}},
		{`verbs: [list]`, []*request.Info{node}, []*request.Info{&pod, path("/x")}},
		{`namespaces: [ns]`, []*request.Info{&pod}, []*request.Info{node, path("/x")}},
		{`namespaces: [""]`, []*request.Info{node}, []*request.Info{&pod, path("/x")}},
		{`resources: [{group: ""}]`, []*request.Info{&pod, sub("log"), node}, []*request.Info{path("/x")}},
		{`resources: [{group: apps}]`, nil, []*request.Info{&pod}},
		{`resources: [{group: "*", resources: [pods]}]`, []*request.Info{&pod}, []*request.Info{sub("log"), node}},
		{`resources: [{resources: ["pods/*"]}]`, []*request.Info{&pod, sub("log")}, []*request.Info{node}},
		{`resources: [{resources: ["pods/log"]}]`, []*request.Info{sub("log")}, []*request.Info{&pod, sub("exec")}},
		{`resources: [{resources: ["*/log"]}]`, []*request.Info{sub("log")}, []*request.Info{&pod, node}},
		{`resources: [{resources: ["*"]}]`, []*request.Info{sub("log"), node}, []*request.Info{path("/x")}},
		{`resources: [{resources: [pods], resourceNames: [p]}]`, []*request.Info{&pod}, nil},
		{`resources: [{resources: [pods], resourceNames: [q]}]`, nil, []*request.Info{&pod}},
		{`nonResourceURLs: ["/x"]`, []*request.Info{path("/x")}, []*request.Info{path("/x/y"), &pod}},
		{`nonResourceURLs: ["/x*"]`, []*request.Info{path("/x"), path("/xy")}, []*request.Info{path("/y")}},
		{`nonResourceURLs: ["*"]`, []*request.Info{path("/x")}, []*request.Info{&pod}},
	} {
		p, err := parse([]byte(head + "rules:\n- " +
			strings.Replace("{level: Request, "+strings.Trim(c.rule, "{}")+"}", ", }", "}", 1)))
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		for _, info := range c.matches {
			if d := p.decide(user, info); d.level != auditv1.LevelRequest {
				t.Errorf("%s does not match %+v", c.rule, info)
			}
		}
		for _, info := range c.not {
			if d := p.decide(user, info); d.level != auditv1.LevelNone {
				t.Errorf("%s matches %+v", c.rule, info)
			}
		}
	}
}

// The first rule that matches counts; its omitManagedFields is above the policy's, its omitStages come to them.
func TestFirstRule(t *testing.T) {
	t.Parallel()
	p, err := parse([]byte(head +
		"omitManagedFields: true\nomitStages: [Panic]\nrules: [{level: Metadata, users: [u], omitManagedFields: false, omitStages: [RequestReceived]}, {level: Request}]"))
	if err != nil {
		t.Fatal(err)
	}
	if d := p.decide(&request.User{Name: "u"}, &request.Info{}); d.level != auditv1.LevelMetadata ||
		d.omitManagedFields || !d.omits(auditv1.StagePanic) ||
		!d.omits(auditv1.StageRequestReceived) || d.omits(auditv1.StageResponseComplete) {
		t.Errorf("%+v", d)
	}
	if d := p.decide(nil, &request.Info{}); d.level != auditv1.LevelRequest || !d.omitManagedFields ||
		d.omits(auditv1.StageRequestReceived) {
		t.Errorf("of a stranger: %+v", d)
	}
}
