package audit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// Policy chooses, for each request, what its audit events contain. Load returns it once, before the server starts. It
// is read-only afterwards, and requests share it without a lock.
type Policy struct{ auditv1.Policy }

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 3 << 20

// Load reads the policy in a file: YAML or JSON of audit.k8s.io/v1. Fields that there are not are errors. An error
// keeps the server from starting. A policy that is half understood would leave requests out of the log, and nobody
// would notice before the log is needed.
func Load(path string) (*Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: failed to read file path %q: %w", path, err)
	}
	p, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: %w: from file %s", err, path)
	}
	return p, nil
}

// parse reads a policy. docbounds comes first: aliases could make a small YAML document huge in memory. Unknown fields
// are reported after the kind, because most fields of another kind are unknown.
func parse(text []byte) (*Policy, error) {
	if err := docbounds.YAML(text, docbounds.Bounds{Bytes: 2 * maxPolicy, Values: 100_000, Depth: 100}); err != nil {
		return nil, fmt.Errorf("failed decoding: %w", err)
	}
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("failed decoding: %w", err)
	}
	p := &Policy{}
	strict, err := json.UnmarshalStrict(doc, &p.Policy)
	if err != nil {
		return nil, fmt.Errorf("failed decoding: %w", err)
	}
	if want := auditv1.SchemeGroupVersion.WithKind("Policy"); p.GroupVersionKind() != want {
		return nil, fmt.Errorf("failed decoding: it must be of kind %s of %s, and is of kind %q of %q", want.Kind,
			want.GroupVersion(), p.Kind, p.APIVersion)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("failed decoding: %w", errors.Join(strict...))
	}
	if len(p.Rules) == 0 {
		return nil, errors.New("loaded illegal policy with 0 rules")
	}
	return p, p.validate().ToAggregate()
}

func levels() []auditv1.Level {
	return []auditv1.Level{auditv1.LevelNone, auditv1.LevelMetadata, auditv1.LevelRequest, auditv1.LevelRequestResponse}
}

func stages() []auditv1.Stage {
	return []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted, auditv1.StageResponseComplete,
		auditv1.StagePanic}
}

// validate collects every error, so that the administrator can mend them in one pass. The messages are upstream's.
func (p *Policy) validate() field.ErrorList {
	errs := validateStages(p.OmitStages, field.NewPath("omitStages"))
	for i := range p.Rules {
		errs = append(errs, validateRule(&p.Rules[i], field.NewPath("rules").Index(i))...)
	}
	return errs
}

func validateStages(given []auditv1.Stage, at *field.Path) (errs field.ErrorList) {
	for i, s := range given {
		if !slices.Contains(stages(), s) {
			errs = append(errs, field.Invalid(at.Index(i), string(s),
				"allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"))
		}
	}
	return errs
}

func validateRule(r *auditv1.PolicyRule, at *field.Path) (errs field.ErrorList) {
	switch {
	case r.Level == "":
		errs = append(errs, field.Required(at.Child("level"), ""))
	case !slices.Contains(levels(), r.Level):
		errs = append(errs, field.NotSupported(at.Child("level"), r.Level, levels()))
	}
	urls := at.Child("nonResourceURLs")
	if len(r.NonResourceURLs) > 0 && (len(r.Resources) > 0 || len(r.Namespaces) > 0) {
		errs = append(errs, field.Invalid(urls, r.NonResourceURLs,
			"rules cannot apply to both regular resources and non-resource URLs"))
	}
	for i, url := range r.NonResourceURLs {
		switch {
		case url == "*":
		case !strings.HasPrefix(url, "/"):
			errs = append(errs, field.Invalid(urls.Index(i), url,
				"non-resource URL rules must begin with a '/' character"))
		case strings.Contains(strings.TrimSuffix(url, "*"), "*"):
			errs = append(errs, field.Invalid(urls.Index(i), url,
				"non-resource URL wildcards '*' must be the final character of the rule"))
		}
	}
	resources := at.Child("resources")
	for _, g := range r.Resources {
		if g.Group != "" && g.Group != "*" {
			for _, msg := range validation.IsDNS1123Subdomain(g.Group) {
				errs = append(errs, field.Invalid(resources.Child("group"), g.Group, msg))
			}
		}
		if len(g.ResourceNames) > 0 && len(g.Resources) == 0 {
			errs = append(errs, field.Invalid(resources.Child("resourceNames"), g.ResourceNames,
				"using resourceNames requires at least one resource"))
		}
	}
	return append(errs, validateStages(r.OmitStages, at.Child("omitStages"))...)
}
